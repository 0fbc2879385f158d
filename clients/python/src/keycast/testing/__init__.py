"""A client without a network, for unit tests of what is built on one."""

from .fake import FakeKeycast

__all__ = ["FakeKeycast"]
