"""Keys to be fetched now: those named at about the same time leave in one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .gateway import Gateway

# As many keys, and as many users, as `POST /v1/refresh` takes.
_KEYS_MAX = 5_000
_USERS_MAX = 1_000

# A backend names all keys of one change within this time.
_COLLECT_SECONDS = 0.03


@dataclass
class _Refresh:
    """A call of `refresh`, or a part of it."""

    keys: list[str]
    ended: asyncio.Future[None]


@dataclass
class _Batch:
    """What is collected for the same users."""

    calls: list[_Refresh] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


class Refreshes:
    """Collects keys, and sends them.

    :param follow: is given the task of each request
    """

    def __init__(self, gateway: Gateway, follow: Callable[[asyncio.Task[Any]], object]) -> None:
        self._gateway = gateway
        self._follow = follow
        self._collected: dict[tuple[str, ...], _Batch] = {}
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, requests: list[tuple[list[str], list[str]]]) -> list[asyncio.Future[None]]:
        """Each ends when every node was told of its keys."""
        return [self._collect(keys, tuple(users)) for keys, users in requests]

    def _collect(self, keys: list[str], users: tuple[str, ...]) -> asyncio.Future[None]:
        """Takes keys of one request at most."""
        batch = self._collected.get(users)
        if batch and len(batch.keys) + len(keys) > _KEYS_MAX:
            self._send(users)
            batch = None
        if not batch:
            batch = self._collected[users] = _Batch()
        loop = asyncio.get_running_loop()
        call = _Refresh(keys, loop.create_future())
        batch.keys.update(keys)
        batch.calls.append(call)
        self._timer = self._timer or loop.call_later(_COLLECT_SECONDS, self.send_all)
        return call.ended

    def send_all(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None
        for users in list(self._collected):
            self._send(users)

    def _send(self, users: tuple[str, ...]) -> None:
        calls = self._collected.pop(users).calls
        self._follow(asyncio.get_running_loop().create_task(self._refresh_all(calls, users)))

    async def _refresh_all(self, calls: list[_Refresh], users: tuple[str, ...]) -> None:
        """Refreshes what calls name, so that a wrong key fails alone.

        A gateway refuses all keys of a request for one that is wrong: then each half of the calls has one of its own.
        """
        keys = list(dict.fromkeys(key for call in calls for key in call.keys))
        try:
            await self._gateway.post("/v1/refresh", {"keys": keys, "users": list(users) or None})
        # Any error, also of keys that are no texts: a call that nobody ended would be waited for for ever, by `close` too.
        except Exception as error:
            if getattr(error, "status", 400) == 400 and len(calls) > 1:
                half = len(calls) // 2
                await asyncio.gather(self._refresh_all(calls[:half], users), self._refresh_all(calls[half:], users))
                return
            for call in calls:
                if not call.ended.done():  # its caller may have given up
                    call.ended.set_exception(error)
        else:
            for call in calls:
                if not call.ended.done():
                    call.ended.set_result(None)


def requests_of(keys: str | Iterable[str], users: Iterable[str]) -> list[tuple[list[str], list[str]]]:
    """The keys and the users of each request, so many as one takes."""
    parts = _parts([keys] if isinstance(keys, str) else keys, _KEYS_MAX)
    groups = _parts(sorted(users), _USERS_MAX) or [[]]
    return [(part, group) for group in groups for part in parts]


def _parts(names: Iterable[str], count: int) -> list[list[str]]:
    """Each name once, so many in a part."""
    every = list(dict.fromkeys(names))
    return [every[start : start + count] for start in range(0, len(every), count)]
