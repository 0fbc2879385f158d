"""All that the client takes from the world around it: clocks, timers, chance, sockets. Tests hand in their own."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol


class Socket(Protocol):
    """A connection, or one being made. After `close()` it calls nothing any more."""

    def send(self, text: str) -> None: ...

    def close(self, code: int) -> None: ...


class Timer(Protocol):
    def cancel(self) -> None: ...


class Environment(Protocol):
    def now(self) -> float:
        """Monotonic, in milliseconds."""

    def date(self) -> float:
        """Milliseconds since 1970, only for what is shown to people."""

    def random(self) -> float:
        """From 0 to 1."""

    def soon(self, task: Callable[[], None]) -> None:
        """Runs it once the present turn of the loop is over."""

    def later(self, ms: float, task: Callable[[], None]) -> Timer: ...

    def future(self) -> asyncio.Future[Any]: ...

    def run(self, task: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    def report(self, error: BaseException, message: str) -> None:
        """Something has failed that nobody awaits."""

    def dial(
        self,
        url: str,
        on_message: Callable[[str | bytes], None],
        on_close: Callable[[int, str], None],
    ) -> Socket: ...


@dataclass
class Link:
    """The connection, as far as handles show it."""

    #: Names the time since the last loss.
    session: object = field(default_factory=object)
    #: There is no connection, and it is not the first one that is being made. None before any was tried.
    is_offline: bool | None = None
    #: The application has closed the client.
    is_closed: bool = False


class Alarm:
    """One thing waited for. Setting it again puts off what was set before."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._timer: Timer | None = None

    def set(self, task: Callable[[], None], ms: float) -> None:
        def end() -> None:
            self._timer = None
            task()

        self.clear()
        self._timer = self._environment.later(ms, end)

    @property
    def is_set(self) -> bool:
        return self._timer is not None

    def clear(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None


class LoopEnvironment:
    """The running loop's clocks and timers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def now(self) -> float:
        return self._loop.time() * 1_000

    def date(self) -> float:
        return time.time() * 1_000

    def random(self) -> float:
        return random.random()

    def soon(self, task: Callable[[], None]) -> None:
        self._loop.call_soon(task)

    def later(self, ms: float, task: Callable[[], None]) -> Timer:
        return self._loop.call_later(ms / 1_000, task)

    def future(self) -> asyncio.Future[Any]:
        return self._loop.create_future()

    def run(self, task: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        running = self._loop.create_task(task, name="keycast")
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)
        return running

    async def ended(self) -> None:
        """Waits until none of its tasks is left: sockets, and the application's function for tokens."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def report(self, error: BaseException, message: str) -> None:
        self._loop.call_exception_handler({"message": message, "exception": error})
