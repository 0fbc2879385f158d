"""The bot of README.md as it stands there, against a whole Keycast: killed as often as it answers, it is exact."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from keycast import Message, Room, connect
from support import DEADLINE_SECONDS, control, run

FOLDER = Path(__file__).parents[1]
PAGE = (FOLDER / "README.md").read_text()
BOT = next(code for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) if "bot.json" in code)


class Bot:
    def __init__(self, url: str, folder: Path) -> None:
        self._folder = folder
        self._code = BOT.replace("ws://127.0.0.1:8080/ws", url).replace("room:1", "room:bot")

    @property
    def saved(self) -> Path:
        return self._folder / "bot.json"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            self._code,
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(FOLDER / "src")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def answered(room: Room, answer: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for item in room:
            if isinstance(item, Message) and item.data.get("answer") == answer:
                return


async def saved(bot: Bot, fits: str) -> None:
    """Waits until what the bot has saved holds a text."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not bot.saved.exists() or fits not in bot.saved.read_text():
            await asyncio.sleep(0.01)


def test_the_bot_answers_each_question_once_however_often_it_is_killed(tmp_path: Path) -> None:
    @run
    async def test() -> None:
        url = await control("/rooms")
        bot = Bot(url, tmp_path)
        async with connect(url) as keycast:
            room = keycast.room("room:bot")
            questions = [f"question {number}" for number in range(6)]
            async with bot.running():
                await saved(bot, '"position"')
                begun = json.loads(bot.saved.read_text())
            for question in questions[:5]:
                await room.publish({"question": question})
                # It has its name again, though the one before it was killed: else it would end.
                async with bot.running():
                    # It is killed about when it saves: before, or after.
                    await answered(room, question.upper())
            # As if it had saved nothing: all that it answers is there already.
            bot.saved.write_text(json.dumps(begun))
            async with bot.running() as process:
                await room.publish({"question": questions[5]})
                await answered(room, questions[5].upper())
                head = room.position
                assert head is not None
                await saved(bot, f'"seq": {head.seq}')
                process.send_signal(signal.SIGTERM)
                output, _ = await asyncio.wait_for(process.communicate(), DEADLINE_SECONDS)
                assert (process.returncode, output) == (0, b"")
            kept = (await room.history(limit=500)).messages
            answers = [message.data["answer"] for message in kept if "answer" in message.data]
            assert answers == [question.upper() for question in questions]

    test()
