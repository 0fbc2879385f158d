"""What holds for every request."""

#: How long to wait after a refusal that does not say.
PAUSE_DEFAULT_MS = 1_000

#: A request costs one, and one more per so many bytes: docs/protocol.md.
_BYTES_PER_TOKEN = 1_024


def request_bytes_max(limits: dict[str, int]) -> int:
    """The longest text a request may have: the gateway cuts off a client that exceeds a limit by much."""
    return min(limits["messageBytes"], limits["requestsPerSecond"] * _BYTES_PER_TOKEN - 1)
