"""Live stream: websockets and server-sent events."""
