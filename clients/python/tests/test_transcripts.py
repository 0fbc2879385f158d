"""Every transcript, against this client; and that the runner notices a client that does otherwise."""

import asyncio
import json
from pathlib import Path

import pytest

from transcript import run_transcript

FOLDER = Path(__file__).parents[3] / "packages" / "client" / "transcripts"


def is_for_others(text: str) -> bool:
    """Whether it is about a page in a browser, or about values that are kept: neither is here."""
    return any({"page", "keepMs"} & json.loads(line).keys() for line in text.splitlines())


FILES = [file for part in (".", "tokens", "rooms") for file in sorted((FOLDER / part).glob("*.jsonl"))]
TEXTS = {str(file.relative_to(FOLDER)): file.read_text() for file in FILES}
NAMES = [name for name, text in TEXTS.items() if not is_for_others(text)]


@pytest.mark.parametrize("name", NAMES)
def test_transcript(name: str) -> None:
    asyncio.run(run_transcript(TEXTS[name]))


def test_there_are_many() -> None:
    assert len(NAMES) > 110


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
