"""The REST API object and what all its operations share."""
