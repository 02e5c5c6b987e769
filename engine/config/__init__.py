"""Settings of a run: one typed tree for command line, web form, REST and run record."""
