"""WebSocket messages: JSON text, or in binary one line of JSON and the bytes behind it."""

from __future__ import annotations

import json
from typing import Any


def read_frame(data: str | bytes) -> tuple[dict[str, Any], bytes | None]:
    """Gives the message, and the bytes where there are some. Raises ValueError where it is neither."""
    if isinstance(data, str):
        return _parse(data), None
    line, _, body = data.partition(b"\n")
    return _parse(line.decode(errors="replace")), body


def write_frame(message: Any) -> str:
    """The text of a message that is sent."""
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair is no UTF-8: it must be escaped.
        return json.dumps(message, separators=(",", ":"))
    return text


def _parse(text: str) -> dict[str, Any]:
    message = json.loads(text)
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ValueError("a message is an object with a type")
    return message
