// The type of a dialect: what clients say to a server, and how its answers are told apart. In all dialects a chat's message
// carries `"seq":`, its place in the room's order, and `"us":`, when its publish was due. A value that changes carries
// `"key":` and, in nanoseconds as text, when it was made.

/**
 * `message`: pushed, of a room or a key; `value`: of a key, pushed or asked for; `answered`: a request with an `id` is
 * done; `gap`: messages were left out, as the server itself says. A `reply` is to be sent, and nothing else happens.
 */
type Kind =
  | 'message'
  | 'value'
  | 'pong'
  | 'answered'
  | 'entered'
  | 'gap'
  | 'refused'
  | 'ignored'
  | 'unexpected'
  | { reply: string }

export interface Dialect {
  /** That clients offer. */
  subprotocol?: string
  /** What a client says first, where the server waits for it. */
  greeting?: string
  /** Until the client may begin. */
  onHello: (head: string) => 'ready' | { reply: string } | undefined
  /**
   * All messages of this room are wanted, and the name, which nobody else there may have; each is answered with
   * `entered`. `id` 0 where there is one.
   */
  enter: (room: string, name?: string) => string[]
  /** `id`: from 1 on. */
  publish: (id: number, room: string, messageId: string, dueUs: number) => string
  /** All changes of these keys are wanted; each is answered with `entered`. */
  subscribe: (keys: string[]) => string[]
  /** `id`: from 1 on. */
  get: (id: number, key: string) => string
  /** The whole text of an answer to `get`. */
  valueIn: (text: string) => { key: string; data: unknown }
  ping: string
  kindOf: (head: string) => Kind
  /** Of the request that is answered. */
  idOf: (head: string) => number
  /** All messages of rooms begin with it, and nothing else does in a chat. */
  messageStart: string
}
