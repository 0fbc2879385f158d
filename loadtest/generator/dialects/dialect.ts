// The type of a dialect: what clients say to a server, and how its answers are told apart. In all dialects a chat's message
// carries `"seq":`, its place in the room's order, and `"us":`, when its publish was due. A value that changes carries
// `"key":` and, in nanoseconds as text, when it was made.

/**
 * `message`: pushed, of a room or a key; `value`: of a key, pushed or asked for; `answered`: a request with an `id` is
 * done; `gap`: messages were left out, as the server itself says. A `reply` is to be sent, and nothing else happens.
 * @typedef {'message' | 'value' | 'pong' | 'answered' | 'entered' | 'gap' | 'refused' | 'ignored' | 'unexpected'
 *   | { reply: string }} Kind
 *
 * @typedef {object} Dialect
 * @property {string} [greeting] what a client says first, where the server waits for it
 * @property {(head: string) => 'ready' | { reply: string } | undefined} onHello until the client may begin
 * @property {(room: string, name?: string) => string[]} enter all messages of this room are wanted, and the name, which
 *   nobody else there may have; each is answered with `entered`. `id` 0 where there is one
 * @property {(id: number, room: string, messageId: string, dueUs: number) => string} publish `id`: from 1 on
 * @property {(keys: string[]) => string[]} subscribe all changes of these keys are wanted; each is answered with `entered`
 * @property {(id: number, key: string) => string} get `id`: from 1 on
 * @property {(text: string) => { key: string, data: unknown }} valueIn the whole text of an answer to `get`
 * @property {string} ping
 * @property {(head: string) => Kind} kindOf
 * @property {(head: string) => number} idOf of the request that is answered
 * @property {string} messageStart all messages of rooms begin with it, and nothing else does in a chat
 */

export {}
