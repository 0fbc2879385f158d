"""What the tests with a whole Keycast share: the process that started it, and clients led to its gateways."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.request import Request, urlopen

from keycast.connection.websocket import NetworkEnvironment
from keycast.environment import Socket

CONTROL = os.environ["KEYCAST_TEST_CONTROL"]

#: Far longer than anything takes on a busy machine.
DEADLINE_SECONDS = 60


async def control(path: str, body: dict[str, Any] | None = None) -> str:
    """Asks the process that started the system, as for another content of the backend. Gives the gateway's URL."""
    return (await control_gateway(path, body))["url"]


async def control_gateway(path: str, body: dict[str, Any] | None = None) -> dict[str, str]:
    """The same; gives `url`, and `internal` of the internal listener."""

    def ask() -> dict[str, str]:
        with urlopen(Request(f"{CONTROL}{path}", json.dumps(body).encode(), method="POST")) as response:
            return dict(json.load(response))

    return await asyncio.to_thread(ask)


class Routed(NetworkEnvironment):
    """Dials wherever `url` leads then, as through a load balancer, and counts what comes."""

    def __init__(self, url: str) -> None:
        super().__init__(None)
        self.url = url
        self.counts: Counter[str] = Counter()

    def random(self) -> float:
        return super().random() / 10  # Waits that are short: how long they are is tested elsewhere.

    def dial(
        self, url: str, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]
    ) -> Socket:
        self.counts["connections"] += 1

        def count(data: str | bytes) -> None:
            line = data if isinstance(data, str) else data.partition(b"\n")[0]
            self.counts[json.loads(line)["type"]] += 1
            on_message(data)

        return super().dial(self.url, count, on_close)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def runner() -> None:
        asyncio.run(test())

    runner.__name__ = test.__name__
    return runner
