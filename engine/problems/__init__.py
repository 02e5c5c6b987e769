"""Problems: what agents are asked, and the tests that say whether they succeeded."""
