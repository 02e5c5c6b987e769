"""Settings of a run as forms, overrides and TOML, and the paths they may name."""
