"""The client against a whole Keycast, which test/clients/python.test.ts starts: it holds what the backend says."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest

from keycast import Keycast, KeycastError, TokenRefused, Value, ValueState, connect
from support import DEADLINE_SECONDS, Routed, control, run

SECRET = os.environ["KEYCAST_TEST_SECRET"]


def conversation(revision: int) -> dict[str, Any]:
    """A conversation of which a change is small beside the whole."""
    lines = [f"line {n} of what was said: {revision if n == 7 else 'hello'}" for n in range(40)]
    return {"revision": revision, "lines": lines}


async def publish(name: str, revision: int) -> str:
    return await control("/publish", {"path": f"/doc/{name}", "text": json.dumps(conversation(revision))})


async def reached(handle: Value, fits: Callable[[ValueState], bool]) -> ValueState:
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for state in handle:
            if fits(state):
                return state
    raise AssertionError("the handle was closed")


async def revision(handle: Value, number: int) -> None:
    state = await reached(handle, lambda state: bool(state.value) and state.value["revision"] == number)
    assert state.value == conversation(number)


@run
async def test_every_change_arrives_most_as_a_delta() -> None:
    environment = Routed(await publish("1", 0))
    async with Keycast("ws://somewhere/ws", environment, environment.ended) as keycast:
        with keycast.value("doc:1") as doc:
            await revision(doc, 0)
            for number in range(1, 21):
                await publish("1", number)
                await revision(doc, number)
            assert doc.state.content_type == "application/json"
            assert doc.state.size_bytes == len(json.dumps(conversation(20)))
        assert environment.counts["delta"] > 10
        assert await keycast.get("doc:1") == conversation(20)
    assert keycast.state.name == "closed"


@run
async def test_a_gateway_that_is_killed_and_replaced_loses_nothing() -> None:
    environment = Routed(await publish("killed", 0))
    await publish("kept", 0)
    async with Keycast("ws://somewhere/ws", environment, environment.ended) as keycast:
        killed, kept = keycast.value("doc:killed"), keycast.value("doc:kept")
        await revision(killed, 0)
        await revision(kept, 0)
        before = environment.counts["value"]
        lost = asyncio.Event()
        keycast.on_state(lambda state: lost.set() if state.name == "waiting" else None)
        environment.url = await control("/kill")
        await asyncio.wait_for(lost.wait(), DEADLINE_SECONDS)
        await publish("killed", 1)
        await revision(killed, 1)
        await revision(kept, 0)
        # What did not change is not sent again: it is resumed by its version.
        async with asyncio.timeout(DEADLINE_SECONDS):
            while environment.counts["current"] == 0:
                await asyncio.sleep(0.01)
        assert environment.counts["value"] - before <= 1
        assert environment.counts["connections"] >= 2


@run
async def test_a_gateway_that_is_stopped_is_left_as_it_asks() -> None:
    environment = Routed(await publish("moved", 1))
    async with Keycast("ws://somewhere/ws", environment, environment.ended) as keycast:
        doc = keycast.value("doc:moved")
        await revision(doc, 1)
        environment.url = await control("/stop")
        await publish("moved", 2)
        await revision(doc, 2)
        assert environment.counts["closing"] == 1


@run
async def test_content_and_errors() -> None:
    await control("/publish", {"path": "/doc/text", "text": "héllo", "type": "text/plain; charset=utf-8"})
    url = await control("/publish", {"path": "/doc/image", "text": "\u0001", "type": "image/png"})
    async with connect(url.replace("ws:", "http:")) as keycast:
        assert await keycast.get("doc:text") == "héllo"
        assert await keycast.get("doc:image") == b"\x01"
        with pytest.raises(KeycastError) as absent:
            await keycast.get("doc:absent")
        assert (absent.value.code, absent.value.key) == ("not_found", "doc:absent")
        with pytest.raises(KeycastError) as nowhere:
            await keycast.get("nowhere:1")
        assert nowhere.value.code == "unauthenticated"


def sign(ttl: int, read: list[str]) -> str:
    now = int(time.time())
    claims = {"sub": "ann", "iat": now, "exp": now + ttl, "keys": {"read": read}}
    return jwt.encode(claims, SECRET, algorithm="HS256")


@run
async def test_a_token_is_renewed_until_there_is_none_any_more() -> None:
    url = await publish("ann", 0)
    given: list[str] = []
    is_signed_out = False

    async def token() -> str:
        if is_signed_out:
            raise TokenRefused("signed out")
        given.append(sign(4, ["own:ann"]))
        return given[-1]

    async with connect(url, token=token) as keycast:
        ended = asyncio.Event()
        keycast.on_state(lambda state: ended.set() if state.name == "closed" else None)
        own = keycast.value("own:ann")
        await revision(own, 0)
        session = keycast.state.session
        assert keycast.state.user == "ann"
        while len(given) < 2:
            await asyncio.wait_for(keycast.get("own:ann"), DEADLINE_SECONDS)
        await publish("ann", 1)
        await revision(own, 1)
        assert keycast.state.session == session
        is_signed_out = True
        await asyncio.wait_for(ended.wait(), DEADLINE_SECONDS)
        assert (keycast.state.code, keycast.state.reason) == ("token_refused", "signed out")
        assert own.state.value == conversation(1)


@run
async def test_without_the_right_token_nothing_is_read() -> None:
    url = await publish("bob", 0)
    async with connect(url, token=sign(60, ["own:ann"])) as keycast:
        with pytest.raises(KeycastError) as forbidden:
            await keycast.get("own:bob")
        assert forbidden.value.code == "forbidden"
    async with connect(url, token="nonsense") as keycast:
        with pytest.raises(KeycastError) as closed:
            await keycast.get("own:ann")
        assert (closed.value.code, keycast.state.code) == ("closed", "token_refused")


@run
async def test_no_gateway_there() -> None:
    async with connect("ws://127.0.0.1:1/ws") as keycast:
        waiting = asyncio.Event()
        keycast.on_state(lambda state: waiting.set() if state.name == "waiting" else None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await keycast.get("doc:1")
        await asyncio.wait_for(waiting.wait(), DEADLINE_SECONDS)
