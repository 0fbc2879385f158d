"""How long to wait after failures: a random time, so that thousands of clients do not come back at once."""

from __future__ import annotations

#: The first wait is at most this long, doubled with each failure.
_FIRST_MS = 1_000
_MAX_MS = 30_000


def backoff_ms(chance: float, failures: float) -> float:
    """Takes a random number from 0 to 1, and the number of failures before this one; two halves double the bound."""
    # The exponent has a bound: 2 to the number of failures of a week would be no float any more.
    return chance * min(_MAX_MS, _FIRST_MS * 2.0 ** min(int(failures), 16))
