"""The close codes after which a new connection makes no sense. A test holds them to the protocol's own."""

FINAL_CLOSE_CODES = {
    1003: "a binary message: requests are text",
    1007: "a text message that is not UTF-8",
    1009: "a message over the size limit named in welcome",
    4007: "errors or requests kept coming far past the limits",
}
