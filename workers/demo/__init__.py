"""The demo: its websocket client and its summary."""
