// A gateway's pair of sockets to one node.
//
// endpoint  binds    connects  sockets          carries
// requests  fetcher  gateway   PUSH → PULL      what the gateway wants
// answers   fetcher  gateway   ROUTER ↔ DEALER  answers; beats both ways
import { Dealer, Push } from 'zeromq'
import type { Dial } from '../gateway/link.ts'
import { FAREWELL_MS } from '../hub/hub.ts'
import { createWriter, receive } from './socket.ts'

/** Two `tcp://` addresses. */
interface Endpoints {
  requests: string
  answers: string
}

/**
 * A request waits this long for room in the socket. Shorter than a peer's silence takes to be noticed, so that a closed
 * pair never leaves its writer waiting.
 */
const SEND_TIMEOUT_MS = 500

/** Requests queued in the socket. Further ones stay with the link as state, which is bounded by keys. */
const REQUESTS_QUEUED_MAX = 16

/** @param options larger answers are refused, and their sender is cut off */
export function dialZeromq(
  { requests, answers }: Endpoints,
  {
    messageBytesMax,
    security,
  }: { messageBytesMax: number; security?: ReturnType<typeof import('./curve.ts').linkSecurity> },
): Dial {
  return message => {
    // `immediate`: without it requests would queue for a node that may never come. Linger 0: messages left in a closed
    // socket are sent again by the next one. No routing id: a reused one can stay deaf for ever.
    const push = new Push({
      ...security,
      immediate: true,
      linger: 0,
      sendHighWaterMark: REQUESTS_QUEUED_MAX,
      sendTimeout: SEND_TIMEOUT_MS,
      reconnectMaxInterval: 2_000,
    })
    // Not `immediate`: the first beat waits for the connection instead of being lost a moment before it.
    const dealer = new Dealer({
      ...security,
      linger: FAREWELL_MS,
      sendTimeout: 0,
      receiveHighWaterMark: 0, // bounded by credit, in bytes
      maxMessageSize: messageBytesMax,
      reconnectMaxInterval: 2_000,
    })
    let closed = false
    push.connect(requests)
    dealer.connect(answers)

    const pushWriter = createWriter(push)
    const dealerWriter = createWriter(dealer)
    receive(dealer, parts => {
      if (!closed) message(parts)
    })

    return {
      request: parts =>
        new Promise((resolve, reject) => {
          pushWriter.write(parts, error => {
            if (!error) resolve(true)
            else if (!closed && (error as NodeJS.ErrnoException).code === 'EAGAIN') resolve(false)
            else reject(error)
          })
        }),
      beat: part => dealerWriter.write([part], () => {}),
      close() {
        if (closed) return
        closed = true
        push.close()
        dealer.close()
      },
    }
  }
}
