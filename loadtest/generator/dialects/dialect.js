// The type of a dialect: what a chat's clients say to a server, and how its answers are told apart. All dialects carry
// the same two things in a message: `"seq":`, its place in the room's order, and `"us":`, when its publish was due.

/**
 * `gap`: messages were left out, as the server itself says. A `reply` is to be sent, and nothing else happens.
 * @typedef {'message' | 'published' | 'entered' | 'gap' | 'refused' | 'ignored' | 'unexpected' | { reply: string }} Kind
 *
 * @typedef {object} Dialect
 * @property {(head: string) => 'ready' | { reply: string } | undefined} onHello until it is ready to enter rooms
 * @property {(rooms: string[]) => string} enter all messages of these rooms are wanted; `id` 0 where there is one
 * @property {(id: number, room: string, messageId: string, dueUs: number) => string} publish `id`: from 1 on
 * @property {(head: string) => Kind} kindOf
 * @property {(head: string) => number} idOf of the publish that is answered
 * @property {string} messageStart all its messages begin with it, and nothing else does
 */

export {}
