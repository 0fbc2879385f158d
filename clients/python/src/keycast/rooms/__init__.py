"""Rooms: every message, in order, once."""
