// Answers pings, which clients use to measure: the cheapest request there is, so the text is put together, not encoded.
import { type ControlMessage, encode, type Ping, type RequestId } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'

/** A pong's text around its numbers, as the protocol spells it. */
const [start, middle, end] = encode({ type: 'pong', id: 111, count: 222 }).split(/111|222/)
const [startWithoutId] = encode({ type: 'pong', count: 222 }).split('222')

interface Deps {
  readonly outbox: { sendText(session: Session, type: ControlMessage['type'], text: string): void }
}

export const createPing = ({ outbox }: Deps) => {
  let count = 0

  return function ping(session: Session, { id }: Ping) {
    count++
    const head = id === undefined ? startWithoutId : start + idText(id) + middle
    outbox.sendText(session, 'pong', head + count + end)
  }
}

function idText(id: RequestId) {
  return typeof id === 'number' ? `${id}` : JSON.stringify(id)
}
