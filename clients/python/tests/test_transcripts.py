"""Every transcript, against this client; and that the runner notices a client that does otherwise."""

import asyncio
import json
from pathlib import Path

import pytest

from transcript import run_transcript

FOLDER = Path(__file__).parents[3] / "packages" / "client" / "transcripts"


def has_page(text: str) -> bool:
    """Whether it is about a page in a browser, which there is none of here."""
    return any("page" in json.loads(line) for line in text.splitlines())


#: The kinds of transcripts that this client is to follow.
FILES = [file for part in (".", "tokens") for file in sorted((FOLDER / part).glob("*.jsonl"))]
TEXTS = {str(file.relative_to(FOLDER)): file.read_text() for file in FILES}
NAMES = [name for name, text in TEXTS.items() if not has_page(text)]


@pytest.mark.parametrize("name", NAMES)
def test_transcript(name: str) -> None:
    asyncio.run(run_transcript(TEXTS[name]))


def test_there_are_many() -> None:
    assert len(NAMES) > 50


DIALLED = '{"rule":"r"}\n{"do":"connect"}\n{"dials":"ws://gateway/ws"}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DIALLED + '{"out":{"type":"ping"}}', "line 4.*it did not happen"),
        ('{"rule":"r"}\n{"do":"connect"}\n{"pass":1}', "the client also did"),
        (DIALLED + '{"state":{"name":"open"}}', "connecting"),
        (DIALLED + '{"dance":true}', "there is no such step"),
    ],
)
def test_the_runner_finds_a_client_that_does_otherwise(text: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        asyncio.run(run_transcript(text))
