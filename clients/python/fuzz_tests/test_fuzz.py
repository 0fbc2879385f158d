"""Absurd messages of a gateway: the client goes on with the next one. FUZZ_SECONDS=3600 and FUZZ_SEED say how long."""

from __future__ import annotations

import asyncio
import json
import os
import time
import traceback
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from absurd import twisted
from test_transcripts import NAMES, TEXTS
from transcript import run_transcript
from world import WELCOME, FakeSocket, FakeTimer, World

#: Timers of a client within the minute after, at most: beats, retries, and one of each request under way.
WAKES_MAX = 2_000


class AnsweringSocket(FakeSocket):
    """Answers pings."""

    def send(self, text: str) -> None:
        super().send(text)
        if json.loads(text)["type"] == "ping":
            self._world.later(1, lambda: self.on_message('{"type":"pong"}'))


class RealWorld(World):
    """Its timers do with strange numbers as those of a loop do, which takes a moment at least."""

    def __init__(self) -> None:
        super().__init__()
        self.wakes = 0

    def later(self, ms: float, task: Callable[[], None]) -> FakeTimer:
        self.wakes += 1
        # A comparison with what is no number fails, as in a loop.
        return super().later(ms if ms > 0.1 else 0.1, task)

    def dial(
        self, url: str, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]
    ) -> FakeSocket:
        self.deeds.append({"dials": url})
        self.socket = AnsweringSocket(self, on_message, on_close)
        return self.socket


class Gateway:
    """A transcript's, which says one thing that is absurd, or nothing in its place."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._at = chance.randrange(12)
        self._count = 0
        self.said: str | bytes | None = None

    def say(self, message: dict[str, Any], body: bytes | None) -> str | bytes | None:
        is_absurd = self._count == self._at
        self._count += 1
        if not is_absurd:
            return _framed(json.dumps(message), body)
        kind = self._chance.randrange(10)
        if kind == 0:
            return None
        if kind == 1 and body is not None:
            self.said = _framed(json.dumps(message), self._chance.randbytes(self._chance.randrange(100)))
        else:
            self.said = _framed(twisted(self._chance, message), body)
        return self.said


async def play(name: str, gateway: Gateway) -> None:
    world = RealWorld()
    keycast = await run_transcript(TEXTS[name], world, gateway.say)
    # A client that was closed stays closed, and so does one that was refused for good.
    if keycast.state.name == "open":
        world.socket.lose(1006)
    for _ in range(6):
        await world.pass_ms(10_000)
        assert world.wakes < WAKES_MAX, "the client sets timer after timer"
    if keycast.state.name != "closed" and any("dials" in deed for deed in world.deeds):
        handle = keycast.value("fresh:1")
        world.socket.say(WELCOME)
        await world.settle()
        body = b'{"fresh":true}'
        head = {"type": "value", "key": "fresh:1", "version": "v1", "contentType": "application/json"}
        world.socket.say(head, body)
        await world.pass_ms(1_000)
        # With a token it is the gateway's answer to that which opens the session.
        if keycast.state.name == "open":
            assert handle.state.value == {"fresh": True}, f"the next session gave {handle.state}"
    keycast.close()
    await world.settle()


def test_after_an_absurd_message_the_client_goes_on_with_the_next_gateway() -> None:
    seed = int(os.environ.get("FUZZ_SEED") or time.time_ns() // 1_000 % 1_000_000)
    seconds = float(os.environ.get("FUZZ_SECONDS") or 20)
    chance = Random(seed)
    plays = 0
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        name, gateway = chance.choice(NAMES), Gateway(chance)
        try:
            asyncio.run(play(name, gateway))
        except Exception as error:
            trace = "".join(traceback.format_exception(error)[-4:])
            said = repr(gateway.said)[:500]
            # Its own text alone: what pytest says of the frames could be as deep as what was sent.
            pytest.fail(f"with seed {seed}, in {name}, the client was sent {said}: {trace:.4000}", pytrace=False)
        plays += 1
    print(f"the client in Python: {plays} absurd inputs, {plays / seconds:.0f} a second, seed {seed}")


def _framed(text: str, body: bytes | None) -> str | bytes:
    """As it goes over the WebSocket: text, or a line and bytes."""
    return text if body is None else text.encode("utf-8", "surrogatepass") + b"\n" + body
