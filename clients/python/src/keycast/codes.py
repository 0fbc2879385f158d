"""The close codes after which a new connection makes no sense. A test holds them to those of the other client."""

FINAL_CLOSE_CODES = frozenset({1002, 1003, 1007, 1009, 4003, 4007})
