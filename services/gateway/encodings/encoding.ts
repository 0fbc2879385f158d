// An encoding is the form in which the sessions of one subprotocol are sent their messages. A session has one for
// its life; a value keeps what each encoding made of it, so that thousands of sessions are written the same bytes.
import type { RequestId } from '@keycast/protocol'
import type { Subscription } from '../topics/topics.ts'
import type { Value } from '../topics/values/value.ts'
import type { Piece } from '../transport/transport.ts'

/**
 * The functions that add pieces return how many bytes they added. They run once per delivery: they make nothing that is
 * not kept for other sessions, but for the start of an answer, which carries the request's id.
 */
export interface Encoding {
  subprotocol: string
  /** The index of this encoding's data in `value.forms` and similar lists. */
  slot: number
  /** Adds a value as every session is sent it. */
  addValue: (value: Value, pieces: Piece[]) => number
  /** Adds it as the answer to a `get`. */
  addAnswer: (value: Value, id: RequestId | undefined, pieces: Piece[]) => number
  /** The whole frame of `value.delta`; `undefined` where the subprotocol has no deltas. */
  delta: ((value: Value) => Buffer) | undefined
  /** Frames a control message that is kept for many sessions. */
  control: (text: string) => Buffer
  /**
   * Whether the subscription has to wait for the value's form to be made. The gateway's `resume` is given the
   * subscription once it no longer has to. `undefined` where nobody ever waits.
   */
  mustWait: ((value: Value, subscription: Subscription) => boolean) | undefined
}

/**
 * An encoding of which a compressed one can be made: its messages are a head and the value's body in some form. The
 * bytes that it keeps of a value are counted in value.ts.
 */
export type PlainEncoding = Encoding & {
  isBinary: boolean
  head: (value: Value, id?: RequestId) => string
  body: (value: Value) => Buffer
}
