"""The check of Keycast's calls to a backend (`notify` in keycast.yaml)."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable, Iterable

# A call is made anew, and signed anew, each time: an older one was recorded by somebody, or clocks differ by more.
_SIGNED_SECONDS_MAX = 300


def is_from_keycast(
    signature: str | None,
    body: bytes,
    secrets: str | Iterable[str],
    max_age: float = _SIGNED_SECONDS_MAX,
    now: Callable[[], float] = time.time,
) -> bool:
    """Whether a call to this backend (`notify` in keycast.yaml) is Keycast's, and of now.

    `signature` is the header `Keycast-Signature`, `body` what came with it, before anything parsed it. Any of the secrets
    may have signed. `max_age` is in seconds.
    """
    first, *signed = (signature or "").split(",")
    said = re.fullmatch(r"t=([0-9]{1,12})", first)
    if not said or abs(now() - int(said[1])) > max_age:
        return False
    given = [each.removeprefix("v1=") for each in signed if re.fullmatch(r"v1=[0-9a-f]{64}", each)]
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        expected = hmac.new(secret.encode(), said[1].encode() + b"." + body, "sha256").hexdigest()
        if any(hmac.compare_digest(each, expected) for each in given):
            return True
    return False
