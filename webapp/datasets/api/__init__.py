"""REST of datasets."""
