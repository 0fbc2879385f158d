"""A backend's calls to a whole Keycast: what it hands over and publishes is what clients are given."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from keycast import Message, connect
from keycast.backend import Backend, BlockingBackend, CallError
from support import DEADLINE_SECONDS, control_gateway, run

TOKEN = os.environ["KEYCAST_TEST_API_TOKEN"]


@run
async def test_what_is_handed_over_is_the_value() -> None:
    content = {"path": "/doc/handed", "text": json.dumps({"revision": 1})}
    gateway = await control_gateway("/publish", content)
    async with asyncio.timeout(DEADLINE_SECONDS), connect(gateway["url"]) as keycast:
        assert await keycast.get("doc:handed") == {"revision": 1}
        async with Backend(gateway["internal"], TOKEN) as backend:
            await asyncio.gather(backend.refresh("doc:handed"), backend.refresh("doc:handed"))
            with pytest.raises(CallError, match="bad_request: nothing was refreshed"):
                await backend.refresh("nothing:1")
            taken = await backend.put("doc:handed", {"revision": 2}, order=2)
            assert taken["taken"] and taken["version"]
            older = await backend.put_all([{"key": "doc:handed", "value": {"revision": 1}, "order": 1}])
            assert older == {"taken": 0, "older": [{"line": 1, "order": 2}]}
            blocking = BlockingBackend(gateway["internal"], TOKEN)
            await asyncio.to_thread(blocking.refresh, "doc:handed")
            assert (await asyncio.to_thread(blocking.delete, "doc:handed", order=3))["taken"]
            assert (await backend.access("doc:handed"))["verbs"]["read"]["allowed"]
            assert (await backend.revoke(sub="nobody"))["sessionsEnded"] == 0


@run
async def test_what_is_published_is_given_in_order_and_once() -> None:
    gateway = await control_gateway("/rooms")
    async with asyncio.timeout(DEADLINE_SECONDS), connect(gateway["url"]) as keycast:
        async with Backend(gateway["internal"], TOKEN) as backend:
            kept = await backend.publish_all({"key": "room:backend", "data": number} for number in range(20))
            again = await backend.publish("room:backend", 19, message_id=kept[19]["messageId"])
        assert again == kept[19] | {"duplicate": True}
        seen = []
        async for item in keycast.room("room:backend", last=20):
            assert isinstance(item, Message)
            seen.append(item.data)
            if len(seen) == 20:
                break
        assert seen == list(range(20))
