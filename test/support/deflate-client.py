"""A client of Keycast on nothing but Python's standard library: what RFC 6455 and RFC 7692 say, and no code of ours.

Subscribes to a key with compressed requests until it has a revision, then gets it by id; says what it saw in one line of JSON.
usage: deflate-client.py PORT KEY REVISION EXTENSIONS
"""

import base64
import hashlib
import json
import os
import socket
import struct
import sys
import zlib

port, key, revision, extensions = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
stream = socket.create_connection(("127.0.0.1", port), timeout=30)
source = stream.makefile("rb")


def handshake():
    nonce = base64.b64encode(os.urandom(16)).decode()
    request = [
        "GET /ws HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {nonce}",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Extensions: {extensions}",
    ]
    stream.sendall("\r\n".join(request + ["", ""]).encode())
    status = source.readline().decode().strip()
    if " 101 " not in status:
        raise SystemExit(f"no WebSocket: {status}")
    accepted = ""
    while (line := source.readline().decode().strip()) != "":
        name, _, value = line.partition(":")
        if name.lower() == "sec-websocket-extensions":
            accepted = value.strip()
    return accepted


def send(message, compress):
    payload = json.dumps(message).encode()
    first = 0x81
    if compress:
        deflate = zlib.compressobj(wbits=-15)
        payload = (deflate.compress(payload) + deflate.flush(zlib.Z_SYNC_FLUSH))[:-4]
        first |= 0x40
    assert len(payload) < 126, "requests of this test are short"
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    stream.sendall(bytes([first, 0x80 | len(payload)]) + mask + masked)


def receive():
    """The next text message: whether it came compressed, and its bytes."""
    while True:
        first, length = source.read(2)
        if length == 126:
            (length,) = struct.unpack(">H", source.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", source.read(8))
        payload = source.read(length)
        if first & 0x0F == 0x08:
            raise SystemExit(f"closed: {payload!r}")
        if first & 0x0F != 0x01:
            continue
        assert first & 0x80, "messages come in one frame"
        if not first & 0x40:
            return False, payload
        # A new one for each message: no context is taken over.
        inflate = zlib.decompressobj(wbits=-15)
        message = inflate.decompress(payload + b"\x00\x00\xff\xff")
        assert not inflate.unconsumed_tail and not inflate.unused_data
        return True, message


def version_of(message):
    """What the content spliced into a value hashes to."""
    data = message[message.index(b',"data":') + len(b',"data":') : -1]
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()[:16]).decode().rstrip("=")


accepted = handshake()
is_compressed = accepted != ""
seen = {"accepted": accepted, "values": 0, "compressed": 0, "answers": 0, "compressedAnswers": 0, "wrong": 0, "revision": -1}
send({"type": "subscribe", "keys": [key]}, is_compressed)
while seen["answers"] < 2:
    compressed, text = receive()
    message = json.loads(text)
    if message["type"] != "value":
        continue
    if version_of(text) != message["version"]:
        seen["wrong"] += 1
    if "id" in message:
        seen["answers"] += 1
        seen["compressedAnswers"] += compressed
        continue
    seen["values"] += 1
    seen["compressed"] += compressed
    if message["data"]["revision"] < seen["revision"]:
        seen["wrong"] += 1
    seen["revision"] = message["data"]["revision"]
    if seen["values"] == 1:
        print("subscribed", flush=True)
    if seen["revision"] == revision:
        send({"type": "get", "id": "a", "key": key}, is_compressed)
        send({"type": "get", "id": 2, "key": key}, False)
print(json.dumps(seen), flush=True)
