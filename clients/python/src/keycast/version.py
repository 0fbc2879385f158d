"""The version of some content is made of its SHA-256: whether a delta made the right bytes can be checked."""

from base64 import urlsafe_b64encode
from hashlib import sha256

#: The first bytes of the hash that a version is made of.
_VERSION_BYTES = 16


def version_of(content: bytes) -> str:
    return urlsafe_b64encode(sha256(content).digest()[:_VERSION_BYTES]).rstrip(b"=").decode()
