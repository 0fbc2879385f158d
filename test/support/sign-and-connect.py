"""A client in another language: signs tokens with PyJWT, connects with them, renews, and prints what it was answered.

Its standard input holds {"url", "key", "signers": [{"algorithm", "file"}]}; it prints an entry per signer.
"""

import json
import sys
import time
import uuid
from pathlib import Path

import jwt
from websockets.sync.client import ClientConnection, connect

given = json.load(sys.stdin)


def sign(algorithm: str, file: str, ttl: int = 60, sub: str = "ann") -> str:
    now = int(time.time())
    claims = {"sub": sub, "iat": now, "exp": now + ttl, "jti": str(uuid.uuid4()), "keys": {"read": [given["key"]]}}
    return jwt.encode(claims, Path(file).read_text().strip(), algorithm=algorithm)


def ask(socket: ClientConnection, message: dict[str, object]) -> dict[str, object]:
    socket.send(json.dumps(message))
    while True:
        answer = json.loads(socket.recv(timeout=20))
        if answer.get("id") == message["id"]:
            return answer


def use(algorithm: str, file: str) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {sign(algorithm, file)}"}
    with connect(given["url"], additional_headers=headers) as socket:
        welcome = json.loads(socket.recv(timeout=20))
        value = ask(socket, {"type": "get", "id": 1, "key": given["key"]})
        renewed = ask(socket, {"type": "auth", "id": 2, "token": sign(algorithm, file, ttl=600)})
        other = ask(socket, {"type": "auth", "id": 3, "token": sign(algorithm, file, sub="bob")})
        expired = ask(socket, {"type": "auth", "id": 4, "token": sign(algorithm, file, ttl=-1)})
        again = ask(socket, {"type": "get", "id": 5, "key": given["key"]})
    return {
        "algorithm": algorithm,
        "welcome": welcome,
        "value": value["type"],
        "renewed": renewed,
        "other": other["code"],
        "expired": expired["code"],
        "again": again["type"],
    }


print(json.dumps([use(**signer) for signer in given["signers"]]))
