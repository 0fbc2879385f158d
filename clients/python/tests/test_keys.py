"""Keys made from parts."""

import pytest

from keycast import key, user_segment


def test_a_key_is_made_from_its_parts() -> None:
    assert key("inbox") == "inbox:"
    made = key("task", "acme", 42, query={"status": "open", "page": None, "q": ""})
    assert made == "task:acme/42?status=open"
    assert key("firm", "Mu\u0308ller GmbH") == "firm:M\u00fcller GmbH"
    assert key("file", query={"path": "a/b"}) == "file:?path=a/b"


@pytest.mark.parametrize("segment", ["a/b", "a?b=c", "a&b", "", "50%", "a|b", "..", "a*", "x\U0001f600"])
def test_what_is_no_segment_is_named(segment: str) -> None:
    with pytest.raises(ValueError, match="segment"):
        key("article", segment)


@pytest.mark.parametrize(
    ("user", "segment"),
    [
        ("ann@acme.test", "ann@acme.test"),
        ("J\u00f6rg", "J\u00f6rg"),
        ("Jo\u0308rg", "Jo~CC~88rg"),
        ("auth0|7", "auth0~7C7"),
        ("a~b", "a~7Eb"),
    ],
)
def test_a_user_is_a_segment_as_sub_has_it(user: str, segment: str) -> None:
    assert user_segment(user) == segment
