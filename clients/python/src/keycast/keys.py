"""Keys: what one looks like, and how to make one from parts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from .errors import KeycastError

# Every key fits this; the gateway checks the rest. Without it a key could be too long to be sent at all.
_KEY = re.compile(r"[a-z0-9-]{1,32}:.{0,255}")

_ASCII = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~@:+,=!$'() -")


def bad_key(key: str) -> KeycastError | None:
    """The error of a key that is none."""
    return None if _KEY.fullmatch(key) else KeycastError("bad_key", "a key is namespace:id", key)


def key(namespace: str, *segments: str | int, query: Mapping[str, str | int | None] | None = None) -> str:
    """
    Make a key: ``key("task", "acme", 42, query={"status": "open"})`` is ``task:acme/42?status=open``.

    Letters are put into Unicode's form NFC. ``query`` has the order in which the namespace names its parameters; what is
    None or empty is left out.

    :raises ValueError: for a part that cannot stand in a key
    """
    identity = "/".join(_part(segment, "segment") for segment in segments)
    if any(str(segment) in (".", "..") for segment in segments):
        raise ValueError('no segment of a key is "." or ".."')
    given = [(name, value) for name, value in (query or {}).items() if value is not None and value != ""]
    parameters = "&".join(f"{name}={_value(value, name)}" for name, value in given)
    return f"{namespace}:{identity}" + (f"?{parameters}" if parameters else "")


def user_segment(user: str) -> str:
    """A user's name as ``{sub}`` in an access pattern stands for it: ``~HH`` for what no segment has."""
    allowed = _is_allowed if unicodedata.is_normalized("NFC", user) else _ASCII.__contains__
    return "".join(
        character
        if character != "~" and allowed(character)
        else "".join(f"~{byte:02X}" for byte in character.encode())
        for character in user
    )


def _part(part: str | int, where: str) -> str:
    text = unicodedata.normalize("NFC", str(part))
    if text and all(map(_is_allowed, text)):
        return text
    raise ValueError(f"{where} {text!r}: a key has letters, digits, spaces and . _ ~ - @ : + , = ! $ ' ( )")


def _value(value: str | int, name: str) -> str:
    return "/".join(part and _part(part, name) for part in str(value).split("/"))


def _is_allowed(character: str) -> bool:
    if character.isascii():
        return character in _ASCII
    return unicodedata.category(character)[0] in "LMN"
