// Sends a link's requests: what was wanted in one turn leaves together, as fast as the socket takes it and the node reads
// it. Commands wait a moment for others while some are under way.
import { FLOW_MS, type World } from '@keycast/service'
import { bytesOf, type Service } from '../wire/codec.ts'
import { encodeRequest } from '../wire/envelope.ts'
import type { Requests } from './requests.ts'
import { createUnheard } from './unheard-requests.ts'

/**
 * While two requests with commands are under way, others wait for the results of the first, but no longer than this since
 * the last left: they leave together. A request wakes four threads, which costs 200 µs of CPU however little it says.
 */
const PAUSE_MS = 2

interface Options<S extends Service> extends Pick<World, 'now' | 'after' | 'turn'> {
  requests: Requests<S>
  /** The id to send under; `undefined` until the hub knows the link. */
  idNow: () => string | undefined
  /** Gives a request to the socket. Resolves to whether it was taken while the id was the link's; if not, all is sent anew. */
  wasTaken: (parts: Buffer[], id: string) => Promise<boolean>
}

export function createSender<S extends Service>({ requests, idNow, wasTaken, now, after, turn }: Options<S>) {
  const { commands } = requests
  const unheard = createUnheard()
  let sent = 0 // requests taken by the socket: only they may be announced
  let isSending = false
  let isSendDue = false
  let commandsSentAt = Number.NEGATIVE_INFINITY
  /** While commands wait for those under way. */
  let stopPause: (() => void) | undefined

  /** Sends the differences, once per turn of the loop. */
  async function send() {
    if (isSending) return
    isSending = true
    await undefined // the turn's other wants join
    let turnEndsAt = now() + FLOW_MS
    // If too much is unheard, the next beat that reports progress continues this.
    for (let id = idNow(); id !== undefined && !requests.isAllSaid() && !unheard.isFull(); id = idNow()) {
      for (const { number, saying } of requests.nextRequests()) {
        const parts = encodeRequest(id, number, saying)
        if (!(await wasTaken(parts, id))) break
        sent = number
        unheard.add(number, bytesOf(parts))
      }
      if (now() < turnEndsAt) continue
      await new Promise<void>(turn) // a million wants take seconds to send
      turnEndsAt = now() + FLOW_MS
    }
    isSending = false
  }

  /**
   * Sends commands at the end of the turn. They come from as many clients as were read in it, each in a microtask of
   * its own, and one request per command would cost several times its content.
   */
  function sendCommands() {
    if (isSending || isSendDue) return
    isSendDue = true
    const pauseMs = commands.isBusy() ? commandsSentAt + PAUSE_MS - now() : 0
    if (pauseMs > 0) stopPause = after(pauseMs, endPause)
    else turn(sendCommandsNow)
  }

  function endPause() {
    stopPause?.()
    stopPause = undefined
    turn(sendCommandsNow)
  }

  function sendCommandsNow() {
    isSendDue = false
    commandsSentAt = now()
    send()
  }

  return {
    send,
    sendCommands,
    /** Commands ended: those that wait may leave. */
    onResults() {
      if (stopPause && !commands.isBusy()) endPause()
    },
    /** The node has heard the first `reached` requests. */
    confirm: unheard.confirm,
    /** The link has a new id, and says everything again under it. */
    startAnew() {
      sent = 0
      unheard.startAnew()
    },
    /** How many requests the socket took under the present id. */
    get sent() {
      return sent
    },
  }
}
