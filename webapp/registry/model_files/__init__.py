"""Model files: layout, checks, import, export."""
