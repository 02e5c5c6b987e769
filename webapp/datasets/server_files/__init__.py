"""Files of the server: their contents, their index, and lookup of single problems."""
