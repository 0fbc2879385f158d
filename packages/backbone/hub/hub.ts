// A node's side of its links: lists them, hears each gateway's wants, and notices lost requests. answers.ts sends.
// Sockets come from `bind`, and the codec knows the content.
import { excerpt } from '@keycast/protocol'
import {
  BEAT_MS,
  type Containment,
  createAwakeClock,
  createFifo,
  createOnceAMinute,
  createTurns,
  type Every,
  noContainment,
  SILENT_MS,
} from '@keycast/service'
import type { Log } from '../gateway/link.ts'
import { bytesOf, type Codec, type Service, WireError } from '../wire/codec.ts'
import {
  decodeBeat,
  decodeRequest,
  encodeMessage,
  type FromLink,
  type HubBeat,
  type Incompatible,
  type Request,
} from '../wire/envelope.ts'
import { createAnswers, type Outgoing } from './answers.ts'
import { type Arrivals, createArrivals, takeBeat, takeRequest } from './lost-requests.ts'
import type { Hub, NodeEvents } from './node.ts'

/**
 * The bound sockets. `send` queues parts for the peer with that routing id; it calls `failed` if there is none. `close`
 * lets what was queued leave first, as far as its receivers take it. `hasReadAll` tells whether there is a moment now
 * at which no request that arrived waits to be read.
 */
interface Bound {
  send: (routingId: Buffer, parts: Buffer[], failed: () => void) => void
  close: () => Promise<void>
  hasReadAll: () => Promise<boolean>
}

export interface FromGateways {
  request: (parts: Buffer[]) => void
  beat: (part: Buffer, routingId: Buffer) => void
}

export type Bind = (events: FromGateways) => Promise<Bound>

interface LinkFields {
  id: string
  /** Of its latest beat: a gateway's sockets get a new one when they reconnect. */
  routingId: Buffer
  /** By the clock of the time in which this process ran. */
  lastHeardAt: number
  /** When it was introduced. */
  since: number
  /** When it last had credit, or took something, by the same clock as `lastHeardAt`. */
  tookAt: number
  /** Of requests that came since the last beat to the link. */
  bytesUntold: number
}

type LinkState<S extends Service> = LinkFields & Arrivals & Outgoing<S>

/**
 * A closed socket has this long to send its goodbyes to a busy peer. A peer that misses its own notices the silence.
 */
export const FAREWELL_MS = 1_000

/** A gateway takes what it is sent within moments. Where it beats and takes nothing for so long, what it is due would pile up. */
const UNTAKEN_MS = 60_000

/**
 * Bytes of requests after which a link is told that they were read, without waiting for its beat: it says no more than
 * some of these at a time (../gateway/unheard-requests.ts).
 */
const HEARD_REPORT_BYTES = 2 ** 19

interface Options<S extends Service> {
  codec: Codec<S>
  bind: Bind
  now: () => number
  /** As the clock of time awake has it. */
  wallNow?: () => number
  every: Every
  turn: (run: () => void) => void
  containment?: Containment
  log: Log
}

export function createHub<S extends Service>({
  codec,
  bind,
  containment = noContainment,
  now,
  wallNow,
  every,
  turn,
  log,
}: Options<S>): Hub<S> {
  const links = new Map<string, LinkState<S>>()
  const answers = createAnswers({
    codec,
    answersFor: (...of) => events.answersFor(...of),
    send: (link: LinkState<S>, parts, failed) => sockets.send(link.routingId, parts, failed),
    logAt: () => events.logAt?.(),
    // No peer had that routing id: the gateway is gone, or has new sockets and is told of the loss at its next beat.
    onFailed: link => links.get(link.id) === link && lose(link),
    containment,
    now,
    turn,
  })
  /** Work that remains for links that were lost. */
  const forgetting = createFifo<Iterator<unknown>>()
  const forgets = createTurns({ now, turn, step: forgetNext })
  let events: NodeEvents<S>
  let sockets: Bound
  const isLogDue = createOnceAMinute(now)
  /** Requests that are read now may have waited so long, while this process stood still. */
  let waitedMs = 0
  const awake = createAwakeClock({
    periodMs: BEAT_MS,
    every,
    now,
    wallNow,
    onStandstill(ms) {
      waitedMs += ms
    },
  })

  async function start(nodeEvents: NodeEvents<S>) {
    events = nodeEvents
    sockets = await bind({ request: onRequestParts, beat: onBeatPart })
    awake.start(sweep)
  }

  async function stop() {
    answers.stop()
    awake.stop()
    for (const link of links.values()) {
      answers.sendResults(link) // without the results their commands would be repeated elsewhere
      // Its keys go to other nodes at once, instead of after the silence that tells of a death.
      sockets.send(link.routingId, [encodeMessage({ type: 'bye', link: link.id })], () => {})
    }
    await sockets?.close()
  }

  function onRequestParts(parts: Buffer[]) {
    awake.look()
    const request = decoded(() => decodeRequest(parts, codec))
    if (request) takeRequestOf(request, bytesOf(parts))
  }

  function onBeatPart(part: Buffer, routingId: Buffer) {
    awake.look()
    const message = decoded(() => decodeBeat(part, codec.wire))
    if (message?.type === 'incompatible') onIncompatible(message, routingId)
    else if (message) takeBeatOf(message, routingId)
  }

  /** The loss of a link takes back all that it wanted. */
  const loseSender = ({ link: id }: { link: string }) => {
    const link = links.get(id)
    if (link) lose(link)
  }
  const takeRequestOf = containment.guard('link', onRequest, loseSender)
  const takeBeatOf = containment.guard('link', onBeat, loseSender)

  function decoded<T>(decode: () => T): T | undefined {
    try {
      return decode()
    } catch (error) {
      // The message is a stranger's, or damaged: then its link notices by the missing number. Nothing here depends on
      // it.
      if (!(error instanceof WireError)) containment.caught('link', error)
      else if (isLogDue('damaged')) {
        log.warn({ error: error.message }, 'a damaged message came from a gateway: dropped')
      }
      return undefined
    }
  }

  function onIncompatible({ link, wire }: Incompatible, routingId: Buffer) {
    if (isLogDue(`wire ${link}`)) {
      log.error(
        { link, theirs: wire ?? 'none', ours: codec.wire },
        'a gateway speaks another wire version and is not served: run the same release of Keycast on both ends',
      )
    }
    // The gateway can thus log the same. A gateway that names no version would take it for a welcome.
    if (wire !== undefined) say(routingId, { link, reached: 0, answered: 0 })
  }

  function onBeat(message: Exclude<FromLink, { type: 'incompatible' }>, routingId: Buffer) {
    let link = links.get(message.link)
    if (message.type === 'bye') return link && farewell(link)
    if (!link) {
      if (message.type === 'taken') return
      // A link that has said something and is not known here was lost, or belongs to an earlier incarnation of this
      // hub.
      if (message.number > 0) return resync(message.link, routingId)
      link = introduce(message.link, routingId)
    }
    link.routingId = routingId
    link.lastHeardAt = awake.now()
    if (link.account.take(message.taken) || link.account.hasRoom()) link.tookAt = awake.now()
    if (message.type === 'beat') {
      if (message.log !== undefined) events.onLogAhead?.(link.id, message.log, message.logAt ?? 0)
      const { announced } = link
      // A process that stood still has read nothing meanwhile itself.
      if (takeBeat(link, message.number) && awake.sinceStandstill() >= BEAT_MS) loseUnlessBehind(link, announced)
      beat(link)
    }
    answers.resume(link)
  }

  /**
   * When hundreds of gateways send all their keys to a node that just started, one gateway's turn may take longer to
   * come than a beat. If it were dropped for that, it would send them again, and the node would never get through.
   *
   * @param announced some of its requests did not come
   */
  async function loseUnlessBehind(link: LinkState<S>, announced: number) {
    const { received } = link
    if (!(await sockets.hasReadAll())) return
    if (links.get(link.id) !== link || link.received > received) return
    log.warn({ link: link.id, received, announced }, 'requests were lost on the way')
    lose(link)
  }

  function onRequest({ link: id, number, body }: Request<S>, bytes: number) {
    const link = links.get(id)
    if (!link) return // its next beat is answered with resync
    if (!takeRequest(link, number)) {
      log.warn({ link: link.id, received: link.received, number }, 'requests were lost on the way')
      return lose(link)
    }
    link.lastHeardAt = awake.now()
    switch (body.type) {
      case 'watch':
        for (const want of body.wants) events.onWatch(id, want)
        break
      case 'get':
        for (const want of body.wants) events.onGet(id, want)
        break
      case 'unwatch':
        for (const key of body.keys) events.onUnwatch(id, key, body.left === true)
        break
      case 'cancelGet':
        for (const key of body.keys) events.onCancelGet(id, key)
        break
      case 'notice':
        if (body.notice === undefined) onUnknown(id, 'notice')
        else events.onNotice?.(id, body.notice)
        beat(link) // the gateway waits to hear that this node has it
        break
      case 'command':
        for (const { id: commandId, command, leftMs = Number.POSITIVE_INFINITY, payer } of body.commands) {
          if (command !== undefined) events.onCommand?.(id, commandId, command, leftMs - waitedMsOf(link), payer)
          else {
            onUnknown(id, 'command')
            answers.tellResult(link, { id: commandId, isRefused: true })
          }
        }
        break
      case 'unknown':
        onUnknown(id, body.kind)
    }
    link.bytesUntold += bytes
    if (link.bytesUntold >= HEARD_REPORT_BYTES && links.get(id) === link) sendBeat(link)
  }

  /**
   * How long a request of the link, read now, may have waited while this process stood still. A link that was introduced
   * since then says nothing before it is heard.
   */
  const waitedMsOf = ({ since }: LinkState<S>) => (now() - since <= awake.sinceStandstill() ? 0 : waitedMs)

  /** A newer gateway's request counts as heard, or its link would be taken for lossy again and again. */
  function onUnknown(link: string, kind: string) {
    if (isLogDue(`kind ${link}`)) {
      log.warn(
        { link, kind: excerpt(kind), ours: codec.wire },
        'a request of an unknown kind was ignored: the gateway is of a newer release',
      )
    }
  }

  function introduce(id: string, routingId: Buffer) {
    const link: LinkState<S> = {
      id,
      routingId,
      lastHeardAt: awake.now(),
      since: now(),
      tookAt: awake.now(),
      bytesUntold: 0,
      ...createArrivals(),
      ...answers.open(),
    }
    links.set(id, link)
    return link
  }

  function resync(link: string, routingId: Buffer) {
    sockets.send(routingId, [encodeMessage({ type: 'resync', link })], () => {})
  }

  function beat(link: LinkState<S>) {
    sendBeat(link, events.headsFor?.(link.id))
  }

  function sendBeat(link: LinkState<S>, heads?: S['Heads']) {
    link.bytesUntold = 0
    const { id, routingId, received, answered } = link
    const log = { log: events.logId?.(), logAt: events.logAt?.(), isCutOff: events.isCutOff?.() || undefined }
    say(routingId, { link: id, reached: received, answered, ...log, heads })
  }

  function say(routingId: Buffer, beat: Omit<HubBeat<S>, 'type'>) {
    sockets.send(routingId, [encodeMessage({ type: 'beat', wire: codec.wire, ...beat })], () => {})
  }

  /** Forgets the link's wants and asks its gateway to send them again. */
  function lose(link: LinkState<S>) {
    drop(link)
    resync(link.id, link.routingId)
  }

  function drop(link: LinkState<S>) {
    links.delete(link.id)
    answers.close(link)
    const rest = events.onLinkLost(link.id)
    if (!rest) return
    forgetting.add(rest)
    forgets.start()
  }

  /** @returns whether there is more to forget */
  function forgetNext(): boolean {
    if (forgetting.first()?.next().done) forgetting.take()
    return forgetting.size > 0
  }

  function farewell(link: LinkState<S>) {
    log.info({ link: link.id }, 'a gateway said goodbye')
    drop(link)
  }

  /** Once all that waited has been read, requests are new again. */
  async function forgetWaited() {
    const known = waitedMs
    if (awake.sinceStandstill() >= BEAT_MS && (await sockets.hasReadAll()) && waitedMs === known) waitedMs = 0
  }

  function sweep() {
    if (waitedMs > 0) void forgetWaited()
    for (const link of links.values()) {
      if (awake.now() - link.lastHeardAt >= SILENT_MS) {
        log.info({ link: link.id }, 'a gateway fell silent')
        drop(link)
      } else if (awake.now() - link.tookAt >= UNTAKEN_MS) {
        log.warn({ link: link.id }, 'a gateway beats and takes nothing that it is sent: starting its link anew')
        lose(link)
      }
    }
  }

  function tell(id: string, key: string) {
    const link = links.get(id)
    if (link) answers.tell(link, key)
  }

  function tellResult(id: string, commandId: string, result: S['Result']) {
    const link = links.get(id)
    if (!link) return // its gateway repeats the command
    answers.tellResult(link, { id: commandId, result: codec.encodeResult ? codec.encodeResult(result) : result })
  }

  function stats() {
    let dueKeys = 0
    for (const link of links.values()) dueKeys += link.due.size
    return { links: links.size, dueKeys, bytesOut: answers.bytesOut() }
  }

  return { start, stop, tell, tellResult, stats }
}
