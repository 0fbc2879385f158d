"""The one kind of error that this package gives to an application."""

from __future__ import annotations

from typing import Any, Literal


#: How what a handle shows stands. `loading`: the gateway has not said so yet, or has nothing to show. `live`: it is as the
#: backend has it. `stale`: the backend, or the journal, cannot be asked. `offline`: there is no connection. `forbidden`:
#: the user may not see it, which is asked again. `ended`: for another reason it is not asked for any more.
Health = Literal["loading", "live", "stale", "offline", "forbidden", "ended"]


class KeycastError(Exception):
    """Something failed. `code` is one of the protocol's, or one of this package.

    These are `closed`: the connection was closed for good; `not_sent`: a message was not sent before its deadline;
    `not_a_room`: the key is that of a value; `not_a_value`: the key is that of a room.
    """

    def __init__(
        self,
        code: str,
        message: str,
        key: str | None = None,
        retry_after: float | None = None,
        subscribed: bool | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(code, message, key)
        self.code = code
        self.message = message
        #: The key it is about, if any.
        self.key = key
        #: Seconds. Where given, trying again makes sense after so long.
        self.retry_after = retry_after
        #: Whether the subscription to `key` stands: the gateway tries again by itself.
        self.subscribed = subscribed
        #: Of a message that the backend refused (`message_refused`): its own code for that, if it gave one.
        self.reason = reason
        #: Of a message that was published: to publish it again under the same id.
        self.message_id: str | None = None
        #: Of a message that was published: False where this kept nothing, True where other data is kept under its id,
        #: None where it is not known.
        self.kept: bool | None = None

    @property
    def is_refusal(self) -> bool:
        """Whether it says that the user has no right, which may change."""
        return not self.subscribed and self.code in ("forbidden", "unauthenticated")

    def __str__(self) -> str:
        return ": ".join(part for part in (self.code, self.key, self.message) if part)

    @classmethod
    def of(cls, message: dict[str, Any], key: str) -> KeycastError:
        """That of an `error` message about a key."""
        retry_after_ms = message.get("retryAfterMs")
        retry_after = None if retry_after_ms is None else retry_after_ms / 1_000
        text = message.get("message", "")
        return cls(message["code"], text, key, retry_after, message.get("subscribed"), message.get("reason"))


def end_of(error: KeycastError | None) -> Literal["forbidden", "ended"] | None:
    """How the subscription ended that an error is about; None if it stands."""
    if not error or error.subscribed:
        return None
    return "forbidden" if error.is_refusal else "ended"
