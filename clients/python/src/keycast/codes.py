"""The close codes after which a new connection makes no sense. A test holds them to the protocol's own."""

FINAL_CLOSE_CODES = {
    1002: "a frame that breaks the rules of WebSocket: fix the client",
    1003: "a binary message: requests are text",
    1007: "a text message that is not UTF-8",
    1009: "a message over the size limit named in welcome",
    4003: "the token was revoked: the user has to sign in again",
    4007: "errors or requests kept coming far past the limits",
}
