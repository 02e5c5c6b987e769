"""Series of numbers: storage and reads."""
