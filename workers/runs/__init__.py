"""Runs on a worker: supervisor, engine process, log shipper."""
