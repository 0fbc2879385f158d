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


def frame_bytes(message: Any) -> int:
    """How long it is as it is sent: a letter of most alphabets takes more than one byte."""
    return len(write_frame(message).encode())


def read_json(text: str) -> Any:
    """What JSON means. An integer of more digits than Python reads, 4300 unless set otherwise, becomes a float."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # Slower, so only here. All other integers must stay integers: some are positions.
        return json.loads(text, parse_int=_int_or_float)


def _int_or_float(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _parse(text: str) -> dict[str, Any]:
    message = read_json(text)
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ValueError("a message is an object with a type")
    if message["type"] == "error" and "code" not in message:
        raise ValueError("an error has a code")
    _check(message)
    return message


_TEXTS = {"key", "version", "contentType", "from", "code", "message", "session", "user", "epoch", "reason", "name", "claim"} | {
    "messageId"
}
_NUMBERS = {"heartbeatMs", "expiresInMs", "retryAfterMs", "reconnectAfterMs", "sinceMs"} | {
    *("at", "seq", "order", "oldest", "newest", "rev", "count", "tabs"),
    *("messageBytes", "keysPerSession", "requestsPerSecond"),
}
#: Each is a list of objects.
_LISTS = {"keys", "members", "messages", "joined", "left"}

#: Larger ones are not exact, and cannot be reckoned with as floats.
_NUMBER_MAX = 2**53


def _check(fields: dict[str, Any]) -> None:
    """Raises ValueError where a known field holds something else, which would be kept, and fail long after."""
    for name, value in fields.items():
        if name in _TEXTS:
            is_right = isinstance(value, str)
        elif name in _NUMBERS:
            is_right = isinstance(value, int | float) and abs(value) <= _NUMBER_MAX
        elif name in _LISTS:
            is_right = isinstance(value, list) and all(isinstance(each, dict) for each in value)
            for each in value if is_right else ():
                _check(each)
        elif name == "id":
            is_right = isinstance(value, str | int | float)
        elif name == "limits":
            is_right = isinstance(value, dict)
            _check(value if is_right else {})
        else:
            continue
        if not is_right:
            raise ValueError(f"the field {name} of a message is none")
