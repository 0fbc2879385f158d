"""The same calls for programs without asyncio."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from .backend import Backend
from .gateway import BlockingGateway
from .refreshes import requests_of

# Mostly a user waits for a call that blocks: for a page.
_PATIENCE_SECONDS = 5.0

_T = TypeVar("_T")


class BlockingBackend:
    """The calls of :class:`Backend` for programs without asyncio, such as Django and Flask.

    Each returns when it has ended. Any thread may call, also at once, and nothing is to be closed. In a loop, where a call
    would stop everything else, use :class:`Backend`.

    :param patience: seconds after which a request is not repeated any more, and no answer is waited for
    :raises ValueError: for a URL that is none
    """

    def __init__(self, url: str, token: str, patience: float = _PATIENCE_SECONDS) -> None:
        self._backend = _Unlooped(url, token, patience)

    def refresh(self, keys: str | Iterable[str], users: Iterable[str] = ()) -> None:
        """Has keys fetched now; returns when every node was told. Name all keys of a change in one call."""
        _end(self._backend.refresh_now(keys, users))

    def publish(
        self, key: str, data: Any, *, sender: str | None = None, message_id: str | None = None
    ) -> dict[str, Any]:
        """Publishes into a room; gives `epoch`, `seq`, `at` and `messageId`."""
        return _end(self._backend.publish(key, data, sender=sender, message_id=message_id))

    def publish_all(self, messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Publishes many, one after the other. Patience is for each."""
        return _end(self._backend.publish_all(messages))

    def put(
        self, key: str, value: Any, *, content_type: str | None = None, order: int | None = None
    ) -> dict[str, Any]:
        """Hands over a key's value: any JSON, or with a `content_type` a text or bytes."""
        return _end(self._backend.put(key, value, content_type=content_type, order=order))

    def delete(self, key: str, *, order: int | None = None) -> dict[str, Any]:
        """Says that a key has no value now."""
        return _end(self._backend.delete(key, order=order))

    def put_all(self, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """`put` and `delete` for many keys, 10,000 at most; gives `taken` and `older`."""
        return _end(self._backend.put_all(lines))

    def revoke(self, *, sub: str | None = None, before: int | None = None, jti: str | None = None) -> dict[str, Any]:
        """Signs a user out, or refuses one token; `before` in Unix seconds."""
        return _end(self._backend.revoke(sub=sub, before=before, jti=jti))

    def access(
        self, key: str, *, token: str | None = None, sub: str | None = None, keys: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Says who may use a key, and by which rule."""
        return _end(self._backend.access(key, token=token, sub=sub, keys=keys))

    def ask_again(self, *, user: str | None = None, key: str | None = None) -> dict[str, Any]:
        """Says that the backend decides otherwise about a user, a key or both: it is asked again."""
        return _end(self._backend.ask_again(user=user, key=key))


class _Unlooped(Backend):
    """Coroutines that never wait for a loop."""

    def __init__(self, url: str, token: str, patience: float) -> None:
        super().__init__(url, token)
        self._gateway = BlockingGateway(url, token, patience)

    async def refresh_now(self, keys: str | Iterable[str], users: Iterable[str]) -> None:
        for part, group in requests_of(keys, users):
            await self._gateway.post("/v1/refresh", {"keys": part, "users": group or None})

    async def _call(self, call: Coroutine[Any, Any, _T]) -> _T:
        return await call

    async def _together(self, calls: Iterable[Coroutine[Any, Any, None]]) -> None:
        for call in calls:
            await call


def _end(call: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine that never waits for a loop."""
    try:
        call.send(None)
    except StopIteration as end:
        return cast(_T, end.value)
    raise AssertionError("it waits for a loop")
