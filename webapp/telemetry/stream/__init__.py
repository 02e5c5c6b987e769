"""The live stream: websockets and server-sent events."""
