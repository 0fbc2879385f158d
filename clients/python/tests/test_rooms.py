"""What transcripts cannot say of rooms: loops, listeners, cancellation and what is published in this language."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from keycast import Gap, Keycast, KeycastError, Message, Position, Room
from world import LIMITS, WELCOME, Setup, World, run


async def given(room: Room, count: int) -> list[Any]:
    """So many items of a loop that is then left: messages by their data."""
    items: list[Any] = []
    async for item in room:
        items.append(item.data if isinstance(item, Message) else item)
        if len(items) == count:
            return items
    raise AssertionError("the handle was closed")


@run
async def test_an_answer_of_an_unknown_kind_leaves_a_publish_to_its_deadline(setup: Setup) -> None:
    room = await setup.follow()
    published = room.publish("a", deadline=0.5)
    setup.world.socket.say({"type": "publishedElsewhere", "id": (await setup.sent())["id"], "key": "room:1"})
    await setup.world.pass_ms(500)
    with pytest.raises(KeycastError) as raised:
        await published
    assert raised.value.code == "publish_unknown"


@run
async def test_a_loop_is_given_every_message_also_those_before_it_and_between_two(setup: Setup) -> None:
    room = await setup.follow()
    setup.message(1)
    assert await given(room, 1) == [1]
    setup.message(2)
    setup.message(3)
    assert await given(room, 2) == [2, 3]
    loop = asyncio.create_task(given(room, 1))
    await setup.world.settle()
    setup.message(4)
    assert await loop == [4]
    room.close()
    assert [item async for item in room] == []


@run
async def test_a_message_has_its_place_and_its_publisher(setup: Setup) -> None:
    room = await setup.follow()
    told = {"type": "message", "key": "room:1", "seq": 1, "at": 1_500, "from": "ann", "messageId": "m", "data": {"n": 1}}
    setup.world.socket.say(told)
    async for item in room:
        assert item == Message(Position("E", 1), 1.5, "ann", "m", {"n": 1})
        break
    assert room.position == Position("E", 1)


@run
async def test_a_loop_that_is_too_far_behind_is_given_a_gap_in_place_of_what_it_missed(setup: Setup) -> None:
    room = await setup.follow(buffer_messages=3)
    for seq in (1, 2, 3, 4, 5):
        setup.message(seq)
    assert await given(room, 2) == [Gap("slow", Position("E", 4), Position("E", 1)), 5]


@run
async def test_a_loop_raises_the_error_that_ends_the_subscription_after_what_came_before(setup: Setup) -> None:
    room = await setup.follow()
    setup.message(1)
    error = {"type": "error", "key": "room:1", "subscribed": False, "code": "unknown_namespace", "message": "no"}
    setup.world.socket.say(error)
    assert await given(room, 1) == [1]
    with pytest.raises(KeycastError, match="no") as raised:
        await given(room, 1)
    assert raised.value.code == "unknown_namespace"


@run
async def test_a_loop_goes_on_after_a_refusal_with_the_message_that_follows(setup: Setup) -> None:
    room = await setup.follow()
    setup.message(1)
    setup.world.socket.say({"type": "error", "key": "room:1", "subscribed": False, "code": "forbidden", "message": "no"})
    assert await given(room, 1) == [1]
    assert room.state.health == "forbidden"
    await setup.world.pass_ms(1_000)
    request = await setup.sent()
    assert request["keys"] == [{"key": "room:1", "after": {"epoch": "E", "seq": 1}}]
    begun = {"key": "room:1", "epoch": "E", "seq": 2, "oldest": 1, "recovered": True, "count": 1}
    setup.world.socket.say({"type": "subscribed", "id": request["id"], "keys": [begun]})
    setup.message(2)
    assert await given(room, 1) == [2]
    assert room.state.health == "live"


@run
async def test_closing_the_client_ends_loops(setup: Setup) -> None:
    room = await setup.follow()

    async def follow() -> None:
        async for _ in room:
            pass

    loops = [asyncio.create_task(follow()) for _ in range(2)]
    await setup.world.settle()
    setup.keycast.close()
    await asyncio.gather(*loops)


@run
async def test_listeners_are_told_until_their_handle_is_closed(setup: Setup) -> None:
    room = await setup.follow(presence=True)
    told: list[Any] = []
    room.on_message(lambda message: told.append(message.data))
    room.on_gap(lambda gap: told.append(gap.reason))
    room.on_change(lambda state: told.append({"live": state.live}))
    remove = room.on_members(lambda state: told.append({"count": state.count}))
    await setup.world.settle()
    setup.world.socket.say({"type": "members", "key": "room:1", "rev": 1, "count": 7})
    remove()
    setup.world.socket.say({"type": "members", "key": "room:1", "rev": 2, "count": 8})
    setup.message(1)
    gap = {"type": "gap", "key": "room:1", "epoch": "E", "seq": 4, "oldest": 3, "reason": "trimmed"}
    setup.world.socket.say(gap)
    assert told == [{"live": True}, {"count": 7}, 1, "trimmed"]
    assert (room.members.count, room.members.members) == (8, None)
    room.close()
    setup.message(5)
    assert len(told) == 4


@run
async def test_what_is_published_is_as_it_was_when_it_was_given(setup: Setup) -> None:
    room = setup.keycast.room("room:1", follow=False)
    setup.world.socket.lose(1006)
    data = {"text": "ä"}
    published = room.publish(data)
    data["text"] = "b"
    await setup.world.pass_ms(1_000)
    setup.welcome()
    out = await setup.sent()
    assert out["data"] == {"text": "ä"}
    assert [message.data for message in room.pending] == [{"text": "ä"}]
    setup.world.socket.say({"type": "published", "id": out["id"], "key": "room:1", "epoch": "E", "seq": 1, "at": 1_500})
    where = await published
    assert (where.position, where.at, where.duplicate) == (Position("E", 1), 1.5, False)
    assert where.message_id == out["messageId"]
    assert room.pending == ()


@run
async def test_what_is_under_way_when_a_gateway_is_closing_is_asked_of_the_next(setup: Setup) -> None:
    published = setup.keycast.room("room:1", follow=False).publish("a")
    get = setup.keycast.get("a:1")
    first = [deed["out"] for deed in setup.world.deeds if "out" in deed]
    setup.world.socket.say({"type": "closing", "reconnectAfterMs": 100})
    await setup.world.pass_ms(100)
    setup.world.deeds.clear()
    setup.welcome()
    again = [deed["out"] for deed in setup.world.deeds if "out" in deed]
    for request in (*first, *again):
        request.pop("id")
    assert sorted(again, key=str) == sorted(first, key=str)
    published.cancel()
    get.cancel()


@pytest.mark.parametrize(("data", "error"), [(object(), TypeError), (float("nan"), ValueError)])
def test_what_is_published_must_be_json(data: Any, error: type[Exception]) -> None:
    async def test() -> None:
        with pytest.raises(error):
            Setup().keycast.room("room:1", follow=False).publish(data)

    asyncio.run(test())


@run
async def test_a_publish_that_is_cancelled_is_sent_no_more_and_holds_up_no_other(setup: Setup) -> None:
    room = setup.keycast.room("room:1", follow=False)
    first, second = room.publish("a"), room.publish("b")
    assert (await setup.sent())["data"] == "a"
    first.cancel()
    assert (await setup.sent())["data"] == "b"
    second.cancel()
    await setup.world.settle()
    assert room.pending == ()
    assert setup.world.timers == [timer for timer in setup.world.timers if timer.at_ms == 25_000]


@run
async def test_the_error_of_a_publish_names_its_message(setup: Setup) -> None:
    room = setup.keycast.room("room:1", follow=False)
    published = room.publish("a", message_id="abcdefghijklmnop", deadline=0.5)
    await setup.world.pass_ms(500)
    with pytest.raises(KeycastError) as raised:
        await published
    assert (raised.value.code, raised.value.message_id) == ("publish_unknown", "abcdefghijklmnop")


@run
async def test_half_a_surrogate_pair_is_sent_escaped(setup: Setup) -> None:
    setup.keycast.room("room:1", follow=False).publish("\ud800")
    assert (await setup.sent())["data"] == "\ud800"
    setup.keycast.close()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"after": {"epoch": "E", "seq": 1}}, TypeError),
        ({"after": Position("E", "1")}, TypeError),
        ({"after": Position("E", -1)}, ValueError),
        ({"after": Position("E", 2**53)}, ValueError),
        ({"last": 501}, ValueError),
        ({"last": -1}, ValueError),
        ({"last": 1.5}, ValueError),
        ({"buffer_messages": 0}, ValueError),
    ],
)
def test_a_beginning_that_is_none_is_refused_at_once_and_harms_no_other_room(
    options: dict[str, Any], error: type[Exception]
) -> None:
    @run
    async def test(setup: Setup) -> None:
        other = setup.keycast.room("room:2")
        with pytest.raises(error):
            setup.keycast.room("room:1", **options)
        assert (await setup.sent())["keys"] == ["room:2"]
        other.close()

    test()


@pytest.mark.parametrize("bounds", [{"after": {"epoch": "E", "seq": 1}}, {"before": 7}])
def test_a_part_of_the_history_is_bounded_by_a_position(bounds: dict[str, Any]) -> None:
    @run
    async def test(setup: Setup) -> None:
        with pytest.raises(TypeError, match="must be a Position"):
            setup.keycast.room("room:1", follow=False).history(**bounds)

    test()


@run
async def test_a_part_of_the_history_has_one_bound(setup: Setup) -> None:
    with pytest.raises(ValueError, match="not both"):
        setup.keycast.room("room:1", follow=False).history(before=Position("E", 2), after=Position("E", 1))


@run
async def test_a_handle_that_follows_nothing_has_no_loop(setup: Setup) -> None:
    with pytest.raises(RuntimeError, match="follow=False"):
        async for _ in setup.keycast.room("room:1", follow=False):
            pass


@pytest.mark.parametrize(
    ("code", "kept"), [("id_conflict", True), ("publish_unknown", None), ("forbidden", False), ("closed", False)]
)
def test_the_error_of_a_publish_says_whether_the_message_was_kept(code: str, kept: bool | None) -> None:
    @run
    async def test(setup: Setup) -> None:
        room = setup.keycast.room("room:1", follow=False)
        if code == "closed":
            setup.keycast.close()
        published = room.publish("a", message_id="abcdefghijklmnop", deadline=0.5)
        if code != "closed":
            request = await setup.sent()
            setup.world.socket.say({"type": "error", "id": request["id"], "key": "room:1", "code": code})
        await setup.world.pass_ms(500)
        with pytest.raises(KeycastError) as raised:
            await published
        error = raised.value
        assert (error.code, error.kept, error.message_id) == (code, kept, "abcdefghijklmnop")

    test()


@run
async def test_a_message_that_the_backend_refused_brings_its_reason(setup: Setup) -> None:
    published = setup.keycast.room("room:1", follow=False).publish("a")
    request = await setup.sent()
    refusal = {"type": "error", "id": request["id"], "key": "room:1", "code": "message_refused", "reason": "profanity"}
    setup.world.socket.say(refusal)
    with pytest.raises(KeycastError) as raised:
        await published
    assert (raised.value.code, raised.value.reason, raised.value.kept) == ("message_refused", "profanity", False)


@run
async def test_an_integer_of_more_digits_than_python_reads_is_a_float_and_all_others_stay_integers(setup: Setup) -> None:
    """CPython refuses it. The publisher must not be able to take every reader out of the room."""
    room = await setup.follow()
    for seq, digits in ((1, 4_300), (2, 5_000)):
        data = f'[{"1" * digits},-{"1" * digits},7]'
        setup.world.socket.on_message(f'{{"type":"message","key":"room:1","seq":{seq},"at":1,"data":{data}}}')
    most = int("1" * 4_300)
    assert await given(room, 2) == [[most, -most, 7], [math.inf, -math.inf, 7]]
    # A position that is saved must be one that is taken back.
    assert room.position is not None and type(room.position.seq) is int
    assert setup.keycast.state.name == "open"


def close_where_not_live(setup: Setup, room: Room) -> None:
    room.on_change(lambda state: None if state.live else setup.keycast.close())


@pytest.mark.parametrize("code", [1006, 4003])
def test_a_client_that_a_listener_closes_when_the_connection_is_lost_stays_closed(code: int) -> None:
    @run
    async def test(setup: Setup) -> None:
        names: list[str] = []
        setup.keycast.on_state(lambda state: names.append(state.name))
        close_where_not_live(setup, await setup.follow())
        await setup.world.settle()
        setup.world.deeds.clear()
        setup.world.socket.lose(code)
        await setup.world.pass_ms(60_000)
        assert (names, setup.world.deeds, setup.world.timers) == (["open", "closed"], [], [])
        assert (setup.keycast.state.code, setup.keycast.state.reason) == (None, "closed by this client")

    test()


@run
async def test_a_client_that_a_listener_closes_when_it_leaves_a_gateway_stays_closed(setup: Setup) -> None:
    close_where_not_live(setup, await setup.follow())
    await setup.world.settle()
    setup.world.deeds.clear()
    setup.world.socket.say({"type": "closing", "reconnectAfterMs": 100})
    await setup.world.pass_ms(60_000)
    assert setup.keycast.state.name == "closed"
    assert (setup.world.deeds, setup.world.timers) == ([{"hangs": True, "code": 4000}], [])


@run
async def test_a_client_that_a_listener_closes_while_it_is_revived_stays_closed(setup: Setup) -> None:
    rooms = [setup.keycast.room("room:1"), setup.keycast.room("room:2")]
    values = [setup.keycast.value("a:1"), setup.keycast.value("a:2")]
    setup.world.socket.lose(4007)
    rooms[0].on_change(lambda state: None if state.error else setup.keycast.close())
    await setup.world.settle()
    setup.world.deeds.clear()
    setup.keycast.reconnect()
    assert setup.keycast.state.name == "closed"
    assert (setup.world.deeds, setup.world.timers) == ([], [])
    for handle in (*rooms, *values):
        assert handle.state.error is not None
        # The loop ends.
        assert [item async for item in handle] == []


@run
async def test_a_client_that_a_listener_reconnects_when_it_has_ended_goes_on_with_everything(setup: Setup) -> None:
    handles = [setup.keycast.value("a:1"), setup.keycast.value("a:2"), setup.keycast.room("room:1")]
    names: list[str] = []
    setup.keycast.on_state(lambda state: names.append(state.name))
    handles[0].on_change(lambda state: setup.keycast.reconnect() if state.error else None)
    await setup.world.settle()
    setup.world.socket.lose(4007)
    setup.world.deeds.clear()
    setup.welcome()
    await setup.world.settle()
    assert names == ["open", "connecting", "open"]
    assert [handle.state.error for handle in handles] == [None, None, None]
    assert [deed["out"]["keys"] for deed in setup.world.deeds] == [["room:1"], ["a:1", "a:2"]]


@run
async def test_a_listener_may_close_its_room_when_that_is_asked_for_anew(setup: Setup) -> None:
    room = await setup.follow()
    room.on_change(lambda state: None if state.live else room.close())
    await setup.world.settle()
    # A hole.
    setup.message(9)
    unsubscribe = await setup.sent()
    assert (unsubscribe["type"], unsubscribe["keys"]) == ("unsubscribe", ["room:1"])
    setup.world.socket.say({"type": "ok", "id": unsubscribe["id"]})
    setup.keycast.room("room:2")
    assert (await setup.sent())["keys"] == ["room:2"]


@run
async def test_a_listener_may_close_another_room_when_its_own_is_asked_for_anew(setup: Setup) -> None:
    room = await setup.follow()
    other = setup.keycast.room("room:2")
    begun = {"key": "room:2", "epoch": "E", "seq": 0, "oldest": 1, "recovered": False, "count": 0}
    setup.world.socket.say({"type": "subscribed", "id": (await setup.sent())["id"], "keys": [begun]})
    room.on_change(lambda state: None if state.live else other.close())
    await setup.world.settle()
    for key in ("room:1", "room:2"):
        setup.world.socket.say({"type": "message", "key": key, "seq": 9, "at": 1, "data": 9})
    subscribe = await setup.sent()
    assert [entry["key"] for entry in subscribe["keys"]] == ["room:1"]
    setup.world.socket.say({"type": "subscribed", "id": subscribe["id"], "keys": [{**begun, "key": "room:1"}]})
    unsubscribe = await setup.sent()
    assert (unsubscribe["type"], unsubscribe["keys"]) == ("unsubscribe", ["room:2"])


@run
async def test_a_listener_may_close_its_room_when_the_gateway_begins_that_anew(setup: Setup) -> None:
    room = await setup.follow()
    room.on_change(lambda state: None if state.live else room.close())
    await setup.world.settle()
    begun = {"key": "room:1", "epoch": "F", "seq": 9, "oldest": 1, "recovered": False, "count": 0}
    setup.world.socket.say({"type": "subscribed", "keys": [begun]})
    unsubscribe = await setup.sent()
    assert (unsubscribe["type"], unsubscribe["keys"]) == ("unsubscribe", ["room:1"])


def test_a_listener_may_close_other_rooms_when_there_are_too_many() -> None:
    async def test() -> None:
        world = World()
        keycast = Keycast("ws://gateway/ws", world)
        world.socket.say({**WELCOME, "limits": {**LIMITS, "keysPerSession": 1}})
        rooms = [keycast.room(f"room:{number}") for number in range(4)]
        closed: list[str] = []

        def close_others(_: object) -> None:
            for room in rooms[2:]:
                closed.append(room.key)
                room.close()

        rooms[1].on_change(close_others)
        await world.settle()
        assert set(closed) == {"room:2", "room:3"}
        assert [deed["out"]["keys"] for deed in world.deeds if "out" in deed] == [["room:0"]]

    asyncio.run(test())


@run
async def test_a_malformed_claim_is_forgotten_and_a_wellformed_one_is_kept(setup: Setup) -> None:
    room = setup.keycast.room("room:1", follow=False)
    claims: list[str] = []
    for given_claim in (None, "stale", None, "a" * 22, None):
        join = room.join("Ann", given_claim)
        request = await setup.sent()
        claims.append(request["claim"])
        code = "bad_message" if given_claim == "stale" else "name_taken"
        setup.world.socket.say({"type": "error", "id": request["id"], "key": "room:1", "code": code})
        with pytest.raises(KeycastError, match=code):
            await join
    made = claims[0]
    assert len(made) == 22
    assert claims == [made, "stale", made, "a" * 22, "a" * 22]


@run
async def test_at_most_10_000_messages_of_a_room_wait(setup: Setup) -> None:
    room = setup.keycast.room("room:1", follow=False)
    published = [room.publish(number) for number in range(10_001)]
    assert len(room.pending) == 10_000
    with pytest.raises(KeycastError) as raised:
        await published[10_000]
    assert (raised.value.code, raised.value.kept) == ("too_many_waiting", False)
    setup.keycast.close()
    outcomes = await asyncio.gather(*published, return_exceptions=True)
    assert all(isinstance(outcome, KeycastError) for outcome in outcomes)
    assert room.pending == ()


@run
async def test_a_publish_past_its_deadline_is_not_sent_again_where_the_machine_slept(setup: Setup) -> None:
    room = setup.keycast.room("room:1", follow=False)
    sent, queued = room.publish("a"), room.publish("b")
    later = room.publish("c", deadline=2 * 86_400)
    assert (await setup.sent())["data"] == "a"
    setup.world.date = lambda: setup.world.now_ms + 86_400_000
    setup.world.socket.lose(1006)
    await setup.world.pass_ms(1_000)
    setup.world.deeds.clear()
    setup.welcome()
    await setup.world.settle()
    codes = [getattr(each.exception(), "code", None) for each in (sent, queued)]
    assert codes == ["publish_unknown", "not_sent"]
    assert [deed["out"]["data"] for deed in setup.world.deeds if "out" in deed] == ["c"]
    later.cancel()


@run
async def test_a_busy_loop_raises_what_ended_the_subscription_also_where_a_refused_join_heals(setup: Setup) -> None:
    room = await setup.follow()
    say = setup.world.socket.say
    joining = room.join("ann")
    say({"type": "joined", "id": (await setup.sent())["id"], "key": "room:1", "name": "ann"})
    await joining
    ended = {"type": "error", "key": "room:1", "subscribed": False}
    say({**ended, "code": "unknown_namespace"})
    say({**ended, "code": "capacity"})
    await setup.world.pass_ms(1_000)
    say({"type": "joined", "id": (await setup.sent())["id"], "key": "room:1", "name": "ann"})
    await setup.world.settle()
    assert room.state.joined_as == "ann"
    with pytest.raises(KeycastError) as raised:
        await given(room, 1)
    assert raised.value.code == "unknown_namespace"
