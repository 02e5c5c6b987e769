"""Files of a model: layout, checks, import, export."""
