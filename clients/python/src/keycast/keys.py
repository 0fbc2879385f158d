"""What a key looks like."""

from __future__ import annotations

import re

from .errors import KeycastError

# Every key fits this; the gateway checks the rest. Without it a key could be too long to be sent at all.
_KEY = re.compile(r"[a-z0-9-]{1,32}:[A-Za-z0-9._~/-]{1,255}")


def bad_key(key: str) -> KeycastError | None:
    """The error of a key that is none."""
    return None if _KEY.fullmatch(key) else KeycastError("bad_key", "a key is namespace:id", key)
