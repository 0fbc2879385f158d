"""A world for tests of the client: a clock that only moves when told, and sockets that are not connected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any


class FakeSocket:
    def __init__(self, world: World, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]):
        self._world = world
        self.on_message = on_message
        self._on_close = on_close
        self._is_over = False

    def send(self, text: str) -> None:
        self._world.deeds.append({"out": json.loads(text)})

    def close(self, code: int) -> None:
        if not self._is_over:
            self._world.deeds.append({"hangs": True, "code": code})
        self._is_over = True

    def say(self, message: dict[str, Any], body: bytes | None = None) -> None:
        text = json.dumps(message)
        self.on_message(text if body is None else f"{text}\n".encode() + body)

    def lose(self, code: int) -> None:
        self._is_over = True
        self._on_close(code, "")


class FakeTimer:
    def __init__(self, world: World, at_ms: float, task: Callable[[], None]):
        self._world = world
        self.at_ms = at_ms
        self.task = task

    def cancel(self) -> None:
        if self in self._world.timers:
            self._world.timers.remove(self)


class World:
    """An environment, and what a test does with it."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.chance = 1.0
        self.timers: list[FakeTimer] = []
        self.deeds: list[dict[str, Any]] = []
        self.socket: FakeSocket
        self.reported: list[BaseException] = []

    def now(self) -> float:
        return self.now_ms

    date = now

    def random(self) -> float:
        return self.chance

    def soon(self, task: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(task)

    def later(self, ms: float, task: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(self, self.now_ms + ms, task)
        self.timers.append(timer)
        return timer

    def future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def run(self, task: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(task)

    def report(self, error: BaseException, message: str) -> None:
        self.reported.append(error)

    def dial(
        self, url: str, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]
    ) -> FakeSocket:
        self.deeds.append({"dials": url})
        self.socket = FakeSocket(self, on_message, on_close)
        return self.socket

    async def settle(self) -> None:
        """Lets all that can go on without time go on."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def pass_ms(self, ms: float) -> None:
        until_ms = self.now_ms + ms
        while True:
            await self.settle()
            due = sorted((timer for timer in self.timers if timer.at_ms <= until_ms), key=lambda timer: timer.at_ms)
            if not due:
                break
            self.timers.remove(due[0])
            self.now_ms = due[0].at_ms
            due[0].task()
        self.now_ms = until_ms
        await self.settle()
