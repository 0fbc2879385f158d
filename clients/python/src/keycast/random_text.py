"""Names and secrets that no other client makes."""

import secrets


def random_text() -> str:
    """128 random bits in 22 letters: a message's id, or the claim to a name."""
    return secrets.token_urlsafe(16)
