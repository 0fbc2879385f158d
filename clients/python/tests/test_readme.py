"""The examples of README.md run as they stand, with a gateway that is made up."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import keycast
from keycast.testing import FakeKeycast

PAGE = (Path(__file__).parents[1] / "README.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def example(part: str) -> str:
    return next(code for code in EXAMPLES if part in code)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("code", EXAMPLES)
def test_it_can_be_read(code: str) -> None:
    compile(code, "README.md", "exec")


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 7


class Stage:
    """What examples connect to: each time another fake, whose rooms are those of before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._rooms: Any = None
        self.fake: FakeKeycast

    def run(self, code: str, *acts: Callable[[FakeKeycast], Any]) -> None:
        """Runs an example. Each act comes when nothing goes on any more; after the last the client is closed."""

        async def play() -> None:
            for act in acts:
                await settle()
                act(self.fake)
            await settle()
            self.fake.keycast.close()

        def connect(url: str, **options: Any) -> keycast.Keycast:
            self.fake = FakeKeycast()
            if self._rooms:
                self.fake._rooms._rooms = self._rooms
            self._rooms = self.fake._rooms._rooms
            self._playing = asyncio.create_task(play())
            return self.fake.keycast

        self._monkeypatch.setattr(keycast, "connect", connect)
        exec(compile(code, "README.md", "exec"), {})


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stage:
    monkeypatch.chdir(tmp_path)
    return Stage(monkeypatch)


def test_values(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.run(
        example("conversation:1"),
        lambda fake: fake.set("text:1", "hi", "text/plain;charset=utf-8"),
        lambda fake: fake.set("conversation:1", {"n": 1}),
    )
    assert capsys.readouterr().out == "hi\n{'n': 1} None None\n"


def test_a_room(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.run(example("last=50"), lambda fake: fake.publish("room:1", "hi"))
    assert capsys.readouterr().out == "{'text': 'Good morning'}\nhi\n"


def test_a_fake(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example("FakeKeycast"), "README.md", "exec"), {})
    assert capsys.readouterr().out == "{'messages': []}\n[{'text': 'Good morning'}, {'text': 'Good morning, Bob'}]\n"


class Bot:
    """The bot of the page, and the room it answers in."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def run(self, *acts: Callable[[FakeKeycast], Any]) -> None:
        self.stage.run(example("bot.json"), *acts)

    def answers(self) -> list[str]:
        return [data["answer"] for data in self.stage.fake.messages("room:1") if "answer" in data]


def ask(*questions: str) -> Callable[[FakeKeycast], None]:
    def act(fake: FakeKeycast) -> None:
        for question in questions:
            fake.publish("room:1", {"question": question}, message_id=f"question-of-{question:->16}")

    return act


@pytest.fixture
def bot(stage: Stage) -> Bot:
    return Bot(stage)


def test_the_bot_answers_what_comes_after_its_first_start(bot: Bot) -> None:
    bot.run()
    saved = json.loads(Path("bot.json").read_text())
    assert saved["position"] == {"epoch": "fake", "seq": 0}
    ask("a", "b")(bot.stage.fake)
    bot.run(ask("c"))
    assert bot.answers() == ["A", "B", "C"]
    assert json.loads(Path("bot.json").read_text()) == saved | {"position": {"epoch": "fake", "seq": 6}}


def test_the_bot_that_fails_before_it_has_saved_answers_nothing_twice(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    bot.run()
    with monkeypatch.context() as broken, pytest.raises(OSError):
        broken.setattr(Path, "replace", fail)
        bot.run(ask("a", "b"))
    assert bot.answers() == ["A"]
    bot.run(ask("c"))
    assert bot.answers() == ["A", "B", "C"]


def test_the_bot_reads_what_a_gap_leaves(bot: Bot, capsys: pytest.CaptureFixture[str]) -> None:
    bot.run(ask("a"))
    ask(*map(str, range(700)))(bot.stage.fake)
    bot.stage.fake.trim("room:1", 600)
    bot.run(ask("last"))
    assert bot.answers() == [*map(str, range(100, 700)), "LAST"]
    assert capsys.readouterr().out == "messages 3 to 102 are gone\n"


def test_the_bot_answers_no_question_twice_in_another_epoch(bot: Bot) -> None:
    bot.run(ask("a", "b"))
    saved = json.loads(Path("bot.json").read_text())
    Path("bot.json").write_text(json.dumps(saved | {"position": {"epoch": "before", "seq": 2}}))
    bot.run(ask("c"))
    assert bot.answers() == ["A", "B", "C"]
