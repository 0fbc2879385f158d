"""The connection: one WebSocket that comes back by itself, and for whom it is."""
