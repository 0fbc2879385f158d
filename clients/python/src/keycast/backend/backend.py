"""A backend's calls to a gateway's internal listener (docs/http-api.md), repeated where that is safe."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from ..random_text import random_text
from .gateway import CallError, Gateway, as_json
from .refreshes import Refreshes, requests_of

# A batch publishes into so many rooms at a time.
_ROOMS_MAX = 8

_T = TypeVar("_T")


class Backend:
    """Calls of one program. All of it belongs to the loop that runs.

    :param url: of the internal listener of any gateway, such as ``http://127.0.0.1:8081``
    :param token: one of the gateway's ``API_TOKENS``, with the scopes of the calls that are made
    :raises ValueError: for a URL that is none, or a token that no header takes
    """

    def __init__(self, url: str, token: str) -> None:
        self._gateway = Gateway(url, token)
        self._refreshes = Refreshes(self._gateway, self._follow)
        self._under_way: set[asyncio.Future[Any]] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def refresh(self, keys: str | Iterable[str], users: Iterable[str] = ()) -> asyncio.Future[None]:
        """Has keys fetched now; ends when every node was told. Keys named within 30 ms leave in one request.

        :param users: of keys that have a value per user: theirs alone
        """
        asked = requests_of(keys, users)
        self._check_open()
        return self._follow(asyncio.get_running_loop().create_task(_all(self._refreshes.ask(asked))))

    async def publish(
        self, key: str, data: Any, *, sender: str | None = None, message_id: str | None = None
    ) -> dict[str, Any]:
        """Publishes into a room; gives `epoch`, `seq`, `at` and `messageId`.

        A try that got no answer is repeated with the same id, which is kept once.
        """
        message = {"key": key, "data": data, "messageId": message_id or random_text()}
        return await self._call(self._publish_one(message if sender is None else message | {"from": sender}))

    async def publish_all(self, messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Publishes many: those of one room one after the other, in the order given.

        Each has `key` and `data`, and may have `from` and `messageId`.
        """
        return await self._call(self._publish_many(messages))

    async def put(
        self, key: str, value: Any, *, content_type: str | None = None, order: int | None = None
    ) -> dict[str, Any]:
        """Hands over a key's value: any JSON, or with a `content_type` a text or bytes, sent as they are.

        Only with an `order` is it repeated: else it could come after a newer one.
        """
        body = as_json(value) if content_type is None else value.encode() if isinstance(value, str) else value
        return await self._hand_over("PUT", key, order, body, content_type or "application/json")

    async def delete(self, key: str, *, order: int | None = None) -> dict[str, Any]:
        """Says that a key has no value now."""
        return await self._hand_over("DELETE", key, order)

    async def put_all(self, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """`put` and `delete` for many keys, 10,000 at most; gives `taken` and `older`.

        Each has `key`, and `value` or `"delete": True`, and may have `contentType` and `order`. Repeated only where
        each has an `order`.
        """
        has_order = all(line.get("order") is not None for line in lines)
        body = b"".join(as_json(line) + b"\n" for line in lines)
        return await self._call(self._gateway.ask(has_order, "POST", "/v1/values", body))

    async def revoke(
        self, *, sub: str | None = None, before: int | None = None, jti: str | None = None
    ) -> dict[str, Any]:
        """Signs a user out, or refuses one token; `before` in Unix seconds."""
        return await self._call(self._gateway.post("/v1/revoke", {"sub": sub, "before": before, "jti": jti}))

    async def access(
        self, key: str, *, token: str | None = None, sub: str | None = None, keys: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Says who may use a key, and by which rule."""
        return await self._call(self._gateway.post("/v1/access", {"key": key, "token": token, "sub": sub, "keys": keys}))

    async def ask_again(self, *, user: str | None = None, key: str | None = None) -> dict[str, Any]:
        """Says that the backend decides otherwise about a user, a key or both: it is asked again."""
        about = {name: value for name, value in (("user", user), ("key", key)) if value is not None}
        return await self._call(self._gateway.post("/v1/access", {"ask": about}))

    async def close(self) -> None:
        """Sends what was collected, and ends when each call has ended."""
        self._is_closed = True
        self._refreshes.send_all()
        while self._under_way:
            await asyncio.wait(self._under_way)
        self._gateway.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise CallError("closed", "close() was called")

    def _follow(self, task: asyncio.Task[_T]) -> asyncio.Task[_T]:
        """Has `close` wait for it."""
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _call(self, call: Coroutine[Any, Any, _T]) -> _T:
        try:
            self._check_open()
        except CallError:
            call.close()
            raise
        return await self._follow(asyncio.create_task(call))

    async def _publish_one(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._gateway.post("/v1/publish", message) | {"messageId": message["messageId"]}
        except CallError as error:
            error.messages = [message]
            raise

    async def _publish_many(self, given: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        messages = [{"messageId": random_text(), **message} for message in given]
        rooms: dict[str, list[int]] = {}
        for index, message in enumerate(messages):
            # Data that is no JSON fails before anything is sent: later nobody would be told what was kept.
            as_json(message)
            rooms.setdefault(message["key"], []).append(index)
        kept: dict[int, dict[str, Any]] = {}
        failures: list[CallError] = []
        waiting = iter(rooms.values())

        async def publish_rooms() -> None:
            for room in waiting:
                try:
                    for index in room:
                        kept[index] = await self._publish_one(messages[index])
                except CallError as error:
                    # The room's next message would come before the one that failed.
                    failures.append(error)

        await self._together(publish_rooms() for _ in range(_ROOMS_MAX))
        if failures:
            failures[0].messages = [message for index, message in enumerate(messages) if index not in kept]
            raise failures[0]
        return [kept[index] for index in range(len(messages))]

    async def _hand_over(
        self, method: str, key: str, order: int | None, body: bytes | None = None, content_type: str | None = None
    ) -> dict[str, Any]:
        headers = {"Content-Type": content_type} if content_type else {}
        if order is not None:
            headers["Keycast-Order"] = str(order)
        path = f"/v1/values/{quote(key, safe='')}"
        return await self._call(self._gateway.ask(order is not None, method, path, body, headers))

    async def _together(self, calls: Iterable[Coroutine[Any, Any, None]]) -> None:
        await asyncio.gather(*calls)


async def _all(futures: Iterable[asyncio.Future[None]]) -> None:
    await asyncio.gather(*futures)
