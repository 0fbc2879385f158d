"""Rooms of a whole Keycast: what was published is kept once and given in order, whatever is killed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keycast import Keycast, KeycastError, Message, Position, Room, connect
from support import DEADLINE_SECONDS, Routed, control, run


async def next_messages(room: Room, count: int) -> list[Message]:
    """Fails where one is missing, comes twice or out of order."""
    messages: list[Message] = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for item in room:
            assert isinstance(item, Message), item
            if messages:
                before = messages[-1].position
                assert item.position == Position(before.epoch, before.seq + 1)
            messages.append(item)
            if len(messages) == count:
                break
    return messages


async def live(room: Room) -> None:
    is_live = asyncio.Event()
    with_room = room.on_change(lambda state: is_live.set() if state.live else None)
    await asyncio.wait_for(is_live.wait(), DEADLINE_SECONDS)
    with_room()


async def whole_history(room: Room) -> list[Any]:
    part = await room.history(limit=500)
    messages = list(part.messages)
    while part.more:
        part = await room.history(before=messages[0].position, limit=500)
        messages = [*part.messages, *messages]
    return [message.data for message in messages]


@run
async def test_a_gateway_and_the_journal_are_killed_and_each_message_is_kept_once() -> None:
    environment = Routed(await control("/rooms"))
    async with Keycast("ws://somewhere/ws", environment, environment.ended) as keycast:
        room = keycast.room("room:killed")
        await live(room)
        published: list[asyncio.Future[Any]] = []

        async def publish(count: int) -> None:
            """One after the other, the last of them not yet answered."""
            for _ in range(count):
                published.append(room.publish(f"message {len(published)}", deadline=DEADLINE_SECONDS))
            await published[-2]

        await publish(50)
        environment.url = await control("/rooms/kill-gateway")
        await publish(50)
        killed = asyncio.create_task(control("/rooms/kill-journal"))
        await publish(50)
        await killed
        await publish(50)
        positions = [(await future).position for future in published]
        expected = [f"message {number}" for number in range(200)]
        seen = await next_messages(room, 200)
        assert [message.data for message in seen] == expected
        assert [message.position for message in seen] == positions
        assert await whole_history(room) == expected
        assert room.pending == ()
        assert environment.counts["connections"] >= 2


@run
async def test_a_client_that_was_away_is_given_what_it_missed() -> None:
    url = await control("/rooms")
    async with connect(url) as here, connect(url) as there:
        room = here.room("room:away", follow=False)
        positions = [(await room.publish(number)).position for number in range(10)]
        missed = await next_messages(there.room("room:away", after=positions[4]), 5)
        assert [message.data for message in missed] == [5, 6, 7, 8, 9]
        last = await next_messages(there.room("room:away", last=3), 3)
        assert [message.data for message in last] == [7, 8, 9]
        elsewhere = Position("another", 3)
        async for item in there.room("room:away", after=elsewhere):
            assert not isinstance(item, Message) and (item.reason, item.position) == ("epoch", positions[-1])
            break
        with pytest.raises(KeycastError) as other:
            await room.history(before=elsewhere)
        assert other.value.code == "other_epoch"


@run
async def test_the_same_message_is_kept_once_and_another_under_its_id_refused() -> None:
    async with connect(await control("/rooms")) as keycast:
        room = keycast.room("room:twice", follow=False)
        first = await room.publish({"text": "ä\ud800"})
        again = await room.publish({"text": "ä\ud800"}, message_id=first.message_id)
        assert (again.position, again.duplicate) == (first.position, True)
        with pytest.raises(KeycastError) as conflict:
            await room.publish("other", message_id=first.message_id)
        assert conflict.value.code == "id_conflict"
        assert await whole_history(room) == [{"text": "ä\ud800"}]


@run
async def test_members_come_and_go() -> None:
    url = await control("/rooms")
    async with connect(url) as here, connect(url) as there:
        room = here.room("room:met", presence=True)
        changed = asyncio.Event()
        room.on_members(lambda state: changed.set())

        async def names(expected: set[str]) -> None:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while {member.name for member in room.members.members or ()} != expected:
                    changed.clear()
                    await changed.wait()

        joined = await room.join("Ann")
        assert joined.name == "Ann" and joined.claim is not None
        other = there.room("room:met", follow=False)
        with pytest.raises(KeycastError) as taken:
            await other.join("Ann")
        assert taken.value.code == "name_taken"
        await other.join("Bob")
        await names({"Ann", "Bob"})
        await other.leave()
        await names({"Ann"})
