"""The fake: what it is given the client shows, and what the client does it takes as a gateway would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from keycast import Gap, KeycastError, Message, Position
from keycast.testing import FakeKeycast


def run(test: Callable[[FakeKeycast], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    async def with_fake() -> None:
        fake = FakeKeycast()
        async with fake.keycast:
            await test(fake)
        assert fake.watched == ()

    def runner() -> None:
        asyncio.run(with_fake())

    return runner


async def soon() -> None:
    await asyncio.sleep(0)


@run
async def test_what_is_set_is_seen_before_and_after_somebody_looks(fake: FakeKeycast) -> None:
    fake.set("a:1", {"n": 1})
    handle = fake.keycast.value("a:1")
    await soon()
    assert fake.watched == ("a:1",)
    assert handle.state.value == {"n": 1}
    fake.set("a:1", {"n": 2})
    assert handle.state.value == {"n": 2}
    fake.set("a:1", "hi", "text/plain;charset=utf-8")
    assert handle.state.value == "hi"
    fake.set("a:1", b"\x01")
    assert (handle.state.value, handle.state.content_type) == (b"\x01", "application/octet-stream")
    handle.close()
    await soon()
    assert fake.watched == ()


@run
async def test_an_equal_value_is_no_change_and_a_key_that_failed_for_good_is_not_watched(fake: FakeKeycast) -> None:
    fake.set("a:1", 1)
    fake.fail("a:2", "forbidden")
    handle, failed = fake.keycast.value("a:1"), fake.keycast.value("a:2")
    await soon()
    state = handle.state
    fake.set("a:1", 1)
    assert handle.state is state
    assert failed.state.error is not None and failed.state.error.subscribed is False
    assert fake.watched == ("a:1",)


@run
async def test_gets_wait_until_there_is_an_answer(fake: FakeKeycast) -> None:
    asked = [fake.keycast.get(key) for key in ("a:1", "a:1", "a:2")]
    await soon()
    assert not any(get.done() for get in asked)
    fake.set("a:1", 7)
    fake.fail("a:2", "not_found", retry_after=1.0)
    assert await asyncio.gather(*asked[:2], fake.keycast.get("a:1")) == [7, 7, 7]
    for get in (asked[2], fake.keycast.get("a:2")):
        with pytest.raises(KeycastError) as raised:
            await get
        assert (raised.value.code, raised.value.retry_after) == ("not_found", 1.0)


@run
async def test_troubles_are_seen_and_end_with_the_next_value(fake: FakeKeycast) -> None:
    fake.set("a:1", 1)
    handle = fake.keycast.value("a:1")
    await soon()
    fake.stale("a:1", 3.0)
    assert handle.state.stale is not None and handle.state.value == 1
    assert await fake.keycast.get("a:1") == 1
    fake.fail("a:1", "backend_error", retry_after=0.1)
    error = handle.state.error
    assert error is not None and (error.code, error.subscribed, error.retry_after) == ("backend_error", True, 0.1)
    fake.set("a:1", 2)
    assert (handle.state.value, handle.state.stale, handle.state.error) == (2, None, None)
    fake.fail("a:1", "backend_refused", message="no")
    with pytest.raises(KeycastError, match="backend_refused: a:1: no"):
        async for _ in handle:
            pass
    assert fake.watched == ()


@run
async def test_a_connection_can_be_lost_and_come_back(fake: FakeKeycast) -> None:
    fake.set("a:1", 1)
    handle = fake.keycast.value("a:1")
    await soon()
    fake.disconnect()
    assert fake.keycast.state.name == "waiting"
    fake.set("a:1", 2)
    assert handle.state.value == 1
    asked = fake.keycast.get("a:1")
    # The client tries, and nobody answers.
    fake.pass_time(60)
    fake.reconnect()
    assert fake.keycast.state.name == "open"
    assert (handle.state.value, await asked) == (2, 2)


@run
async def test_what_is_published_is_kept_and_told_and_what_others_publish_comes(fake: FakeKeycast) -> None:
    fake.publish("room:1", "before", sender="bob")
    room = fake.keycast.room("room:1", last=10)
    seen: list[Any] = []
    room.on_message(lambda message: seen.append((message.data, message.sender)))
    await soon()
    published = await room.publish("mine")
    assert (published.position, published.duplicate) == (Position("fake", 2), False)
    fake.publish("room:1", "after")
    assert seen == [("before", "bob"), ("mine", None), ("after", None)]
    assert fake.messages("room:1") == ["before", "mine", "after"]
    newest = await room.history(limit=2)
    assert ([message.data for message in newest.messages], newest.more) == (["mine", "after"], True)
    older = await room.history(before=newest.messages[0].position)
    assert ([message.data for message in older.messages], older.more) == (["before"], False)
    with pytest.raises(KeycastError) as other:
        await room.history(after=Position("elsewhere", 1))
    assert other.value.code == "other_epoch"


@run
async def test_what_a_listener_publishes_comes_to_all_after_the_message_it_was_told(fake: FakeKeycast) -> None:
    bot, reader = fake.keycast.room("room:1"), fake.keycast.room("room:1")
    told: dict[str, list[Any]] = {"bot": [], "reader": []}

    def answer(message: Message) -> None:
        told["bot"].append(message.data)
        if message.data == "question":
            bot.publish("answer")

    bot.on_message(answer)
    reader.on_message(lambda message: told["reader"].append(message.data))
    await soon()
    fake.publish("room:1", "question")
    fake.publish("room:1", "later")
    assert told == {"bot": ["question", "answer", "later"], "reader": ["question", "answer", "later"]}


@run
async def test_an_id_stands_for_one_message(fake: FakeKeycast) -> None:
    room = fake.keycast.room("room:1", follow=False)
    first = await room.publish("a", message_id="abcdefghijklmnop")
    again = await room.publish("a", message_id="abcdefghijklmnop")
    assert (again.position, again.duplicate) == (first.position, True)
    for message_id, code in (("abcdefghijklmnop", "id_conflict"), ("short", "bad_message")):
        with pytest.raises(KeycastError) as raised:
            await room.publish("b", message_id=message_id)
        assert raised.value.code == code
    assert fake.messages("room:1") == ["a"]


@run
async def test_publishes_can_be_refused(fake: FakeKeycast) -> None:
    room = fake.keycast.room("room:1")
    await soon()
    fake.refuse_publishes("room:1", "forbidden")
    with pytest.raises(KeycastError) as refused:
        await room.publish(1)
    assert (refused.value.code, refused.value.kept) == ("forbidden", False)
    fake.refuse_publishes("room:1", "publish_unknown")
    published = room.publish(1)
    fake.pass_time(30)
    with pytest.raises(KeycastError) as unknown:
        await published
    assert (unknown.value.code, unknown.value.kept) == ("publish_unknown", None)
    fake.refuse_publishes("room:1", "journal_unavailable", retry_after=1.0)
    published = room.publish(1)
    fake.refuse_publishes("room:1", None)
    assert not published.done()
    fake.pass_time(1)
    assert (await published).position.seq == 1


@run
async def test_a_room_resumes_or_tells_a_gap(fake: FakeKeycast) -> None:
    room = fake.keycast.room("room:1")
    await soon()
    fake.publish("room:1", 1)
    fake.disconnect()
    published = room.publish(3)
    fake.publish("room:1", 2)
    assert len(room.pending) == 1
    fake.reconnect()
    assert (await published).position == room.position == Position("fake", 3)
    fake.disconnect()
    for number in (4, 5, 6):
        fake.publish("room:1", number)
    fake.trim("room:1", 2)
    fake.reconnect()
    fake.publish("room:1", 7)
    items: list[Any] = []
    async for item in room:
        items.append(item.data if isinstance(item, Message) else item)
        if items[-1] == 7:
            break
    assert items == [1, 2, 3, Gap("trimmed", Position("fake", 6), Position("fake", 5)), 7]
    readable = await room.history(after=Position("fake", 3))
    assert ([message.data for message in readable.messages], readable.truncated) == ([5, 6, 7], True)


@run
async def test_members_join_are_refused_a_name_that_is_taken_and_leave(fake: FakeKeycast) -> None:
    room = fake.keycast.room("room:1", presence=True)
    await soon()
    fake.set_members("room:1", ["Bob"])
    with pytest.raises(KeycastError) as taken:
        await room.join("Bob")
    assert taken.value.code == "name_taken"
    joined = await room.join("Ann")
    assert joined.name == "Ann" and joined.claim is not None
    assert [member.name for member in room.members.members or ()] == ["Bob", "Ann"]
    await room.leave()
    assert room.members.count == 1


@run
async def test_a_key_of_values_is_no_room(fake: FakeKeycast) -> None:
    with pytest.raises(KeycastError) as raised:
        async for _ in fake.keycast.room("a:1"):
            pass
    assert raised.value.code == "not_a_room"


@run
async def test_time_alone_loses_no_connection(fake: FakeKeycast) -> None:
    fake.pass_time(3_600)
    fake.keycast.reconnect()
    fake.pass_time(3_600)
    assert fake.keycast.state.name == "open"
