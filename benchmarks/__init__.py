"""Side-by-side measurements against what people use instead; each prints one JSON line."""
