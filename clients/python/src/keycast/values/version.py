"""The version of some content is made of its SHA-256: whether a delta made the right bytes can be checked."""

from base64 import urlsafe_b64encode
from hashlib import sha256

#: The first bytes of the hash that a version is made of.
_VERSION_BYTES = 16


#: The type that goes into no version. Of any other a zero byte and its name are hashed after the bytes.
_CONTENT_TYPE_DEFAULT = "application/json"


def version_of(content: bytes, content_type: str) -> str:
    named = b"" if content_type == _CONTENT_TYPE_DEFAULT else b"\0" + content_type.encode()
    return urlsafe_b64encode(sha256(content + named).digest()[:_VERSION_BYTES]).rstrip(b"=").decode()
