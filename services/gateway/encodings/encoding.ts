// An encoding is the form in which the sessions of one subprotocol are sent their messages. A session has one for
// its life; a value keeps what each encoding made of it, so that thousands of sessions are written the same bytes.

/**
 * @typedef {import('@keycast/protocol').RequestId} RequestId
 * @typedef {import('../keys/subscriptions.ts').Subscription} Subscription
 * @typedef {import('../keys/value.ts').Value} Value
 * @typedef {import('../transport/transport.ts').Piece} Piece
 *
 * The functions that add pieces return how many bytes they added. They run once per delivery: they make nothing that is
 * not kept for other sessions, but for the start of an answer, which carries the request's id.
 * @typedef {object} Encoding
 * @property {string} subprotocol
 * @property {boolean} isCompressed whether it is for sessions whose clients take compressed messages
 * @property {number} slot the index of this encoding's data in `value.forms` and similar lists
 * @property {(value: Value, pieces: Piece[]) => number} addValue adds a value as every session is sent it
 * @property {(value: Value, id: RequestId | undefined, pieces: Piece[]) => number} addAnswer adds it as the answer to a
 *   `get`
 * @property {((value: Value) => Buffer) | undefined} delta the whole frame of `value.delta`; `undefined` where the
 *   subprotocol has no deltas
 * @property {(text: string) => Buffer} control frames a control message that is kept for many sessions
 * @property {((value: Value, subscription: Subscription) => boolean) | undefined} mustWait whether the subscription has
 *   to wait for the value's form to be made. The gateway's `resume` is given the subscription once it no longer has to.
 *   `undefined` where nobody ever waits
 *
 * An encoding of which a compressed one can be made: its messages are a head and the value's body in some form.
 * @typedef {Encoding & {
 *   isBinary: boolean,
 *   head: (value: Value, id?: RequestId) => string,
 *   body: (value: Value) => Buffer,
 *   bytesOf: (value: Value) => number,
 * }} PlainEncoding `bytesOf`: what its form of a value takes beside `value.body`, whether made yet or not
 */

export {}
