"""One version of a key's value: its bytes as they came, and what they mean, read when somebody looks and once."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from ..connection.frames import read_json
from ..errors import KeycastError

_JSON = re.compile(r"((application|text)/|[^;]*\+)json(;|$)", re.IGNORECASE)
# Gateways pass text on in UTF-8 and say so. Text in a character set that they cannot read has another one here.
_TEXT = re.compile(r"(text/|application/(xml|javascript)\b|[^;]*\+xml\b).*charset=utf-8", re.IGNORECASE)


class Content:
    def __init__(self, key: str, version: str, content_type: str, body: bytes) -> None:
        self._key = key
        self.version = version
        self.content_type = content_type
        #: The next delta is applied to them.
        self.body = body

    @cached_property
    def value(self) -> Any:
        """JSON parsed, text as a string, anything else as bytes. Raises KeycastError where Python cannot read it."""
        if _JSON.match(self.content_type):
            try:
                return read_json(self.body.decode("utf-8-sig", "replace"))
            except (ValueError, RecursionError) as error:
                # JSON that other languages read: Python's parser calls itself for each level, some thousand at most.
                raise KeycastError("invalid_content", f"it cannot be read: {error}", self._key) from error
        if _TEXT.match(self.content_type):
            try:
                return self.body.decode("utf-8-sig")
            except UnicodeDecodeError:
                pass  # It is no UTF-8 after all: the bytes are all that can be given.
        return self.body
