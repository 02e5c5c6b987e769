"""Problems: their statements, and the tests that judge answers to them."""
