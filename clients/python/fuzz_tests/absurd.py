"""Makes one part of a valid message absurd, from a seed."""

from __future__ import annotations

import json
from random import Random
from typing import Any

LONG = 200_000

#: JSON texts to stand in the place of any value, and a few that are none.
VALUES = [
    *("null", "false", "{}", "[]", '""', "0", "-0", "-1", "0.5", "1e308", "-1e308", "1e999", "5e-324", "NaN", "-Infinity"),
    *("2147483648", "9007199254740992", "-9007199254740992", "9" * 400, "9" * 5_000),
    *('"NaN"', '"1e3"', '"__proto__"', '"__class__"', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"a\\r\\nb"'),
    *('"../../etc/passwd"', '"{0.__class__}"', '"%s%n"', "[[],[[]],{}]", '{"__init__":{"__globals__":1}}', '{"length":1e9}'),
]

#: Python's parser of JSON calls itself for each level.
LARGE = [
    *("[" * levels + "]" * levels for levels in (500, 5_000, 100_000)),
    *('{"a":' * levels + "1" + "}" * levels for levels in (500, 5_000)),
    *("[" + "0," * LONG + "0]", '"' + "x" * LONG + '"', '"' + "\\u0001" * (LONG // 6) + '"'),
    "{" + ",".join(f'"f{n}":0' for n in range(10_000)) + "}",
]

NAMES = ["__proto__", "__class__", "type", "key", "id", "", "\ud800", "0"]


def twisted(chance: Random, message: Any) -> str:
    """The text of a message, one part of which is absurd."""
    text = _text_with(chance, message, chance.randrange(_parts_in(message)))
    return chance.choice(_CUTS)(chance, text) if chance.random() < 0.1 else text


def _parts_in(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_parts_in, inner))


def _text_with(chance: Random, message: Any, place: int) -> str:
    written = 0

    def text_of(part: Any) -> str:
        nonlocal written
        written += 1
        if written == place + 1:
            return _changed(chance, part)
        if isinstance(part, dict):
            return "{" + ",".join(f"{json.dumps(name)}:{text_of(value)}" for name, value in part.items()) + "}"
        if isinstance(part, list):
            return "[" + ",".join(map(text_of, part)) + "]"
        return json.dumps(part)

    return text_of(message)


def _changed(chance: Random, part: Any) -> str:
    text = json.dumps(part)
    kind = chance.randrange(10)
    if kind < 3:
        return chance.choice(VALUES)
    if kind == 3:
        return chance.choice(LARGE)
    if kind == 4:
        return chance.choice([f"[{text}]", json.dumps(text), f'{{"a":{text}}}', f"[{','.join([text] * 1_000)}]"])
    if kind == 5 and isinstance(part, str):
        at = chance.randrange(len(part) + 1)
        return json.dumps(part[:at] + chance.choice(["", "\u0000", " ", "\n", "\ud83d", "%", "/"]) + part[at + 1 :])
    if kind == 6 and isinstance(part, int | float):
        return json.dumps(chance.choice([part + 1, -part, part * 1e300, str(part)]))
    fields = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in (part if isinstance(part, dict) else {"a": part}).items()]
    name = json.dumps(chance.choice([*NAMES, *(part if isinstance(part, dict) else [])]))
    more = f"{name}:{chance.choice(VALUES)}"
    without = fields[: chance.randrange(len(fields) + 1)]
    return "{" + ",".join(chance.choice([[*fields, more], [more, *fields], without, fields[::-1]])) + "}"


_CUTS = [
    lambda chance, text: text[: chance.randrange(len(text) + 1)],
    lambda chance, text: text[chance.randrange(len(text) + 1) :],
    lambda chance, text: text + text,
    lambda chance, text: "",
    lambda chance, text: "\ufeff" + text,
    lambda chance, text: " " * LONG + text,
    lambda chance, text: text.replace(chance.choice(text or " "), "\u0000"),
]
