// A node's side of its links: lists them, hears each gateway's wants, and notices lost requests. answers.ts sends.
// Sockets come from `bind`, and the codec knows the content.
import { excerpt } from '@keycast/protocol'
import { BEAT_MS, createAwakeClock, createOnceAMinute, createTurns, noContainment, SILENT_MS } from '@keycast/service'
import { bytesOf } from '../wire/bytes.ts'
import { WireError } from '../wire/codec.ts'
import { decodeBeat, decodeRequest, encodeMessage } from '../wire/envelope.ts'
import { createAnswers } from './answers.ts'
import { createArrivals, takeBeat, takeRequest } from './lost-requests.ts'

/**
 * @typedef {import('../wire/codec.ts').Service} Service
 *
 * The bound sockets. `send` queues parts for the peer with that routing id; it calls `failed` if there is none. `close`
 * lets what was queued leave first, as far as its receivers take it. `hasReadAll` tells whether there is a moment now
 * at which no request that arrived waits to be read.
 * @typedef {{ send: (routingId: Buffer, parts: Buffer[], failed: () => void) => void, close: () => Promise<void>,
 *   hasReadAll: () => Promise<boolean> }} Bound
 * @typedef {{ request: (parts: Buffer[]) => void, beat: (part: Buffer, routingId: Buffer) => void }} FromGateways
 * @typedef {(events: FromGateways) => Promise<Bound>} Bind
 */

/**
 * The functions that a node gives its hub. All are synchronous.
 *
 * @template {Service} S
 * @typedef {object} NodeEvents
 * @property {(link: string, want: import('../wire/envelope.ts').Want<S>) => void} onWatch called also if the link
 *   watches already: its gateway repeats its position and payload, while earlier answers may still be under way to it
 * @property {(link: string, key: string) => void} onUnwatch
 * @property {(link: string, want: import('../wire/envelope.ts').Want<S>) => void} onGet
 * @property {(link: string, key: string) => void} onCancelGet
 * @property {(link: string, notice: S['Notice']) => void} [onNotice] may come twice
 * @property {(link: string, id: string, command: S['Command'], leftMs: number) => void} [onCommand] may come twice, under
 *   the same id; must be answered with `tellResult`. `leftMs`: the gateway gives it up then. Where it is not above 0, the
 *   gateway has, and a late result surprises who was told so
 * @property {(link: string) => Iterator<unknown> | void} onLinkLost everything that the link wanted is void. Forgetting
 *   100,000 keys may take long: a returned iterator is run to its end turn by turn
 * @property {(link: string, key: string, bytesLeft: number) => { answers: S['Answer'][], more: boolean }} answersFor
 *   the link's due answers for the key: some `bytesLeft` of them, one at least. `more`: it is asked again for the rest,
 *   after other keys and as credit allows
 * @property {() => string} [logId] of what the node answers from. A gateway uses the nodes of one log only
 * @property {() => number | undefined} [logAt] how far that log is: it never goes back, but where it was replaced by an
 *   older state of itself
 * @property {(link: string, logId: string, logAt: number) => void} [onLogAhead] a gateway was told of the log when it was
 *   further than it is now. It uses the node again once the log has another id
 * @property {(link: string) => S['Heads'] | undefined} [headsFor] the node's progress, to go with a beat
 */

/**
 * @template {Service} S
 * @typedef {object} Hub
 * @property {(events: NodeEvents<S>) => Promise<void>} start binds, then calls the events; rejects if a port is taken
 * @property {() => Promise<void>} stop
 * @property {(link: string, key: string) => void} tell the link is due something of the key. Costs one set entry:
 *   `answersFor` is asked for it when the link has credit, so a slow gateway holds no queue of answers
 * @property {(link: string, id: string, result: S['Result']) => void} tellResult of a command, after all answers told
 *   before
 * @property {() => { links: number, dueKeys: number, bytesOut: number }} stats
 */

/**
 * @template {Service} S
 * @typedef {object} LinkFields
 * @property {string} id
 * @property {Buffer} routingId of its latest beat: a gateway's sockets get a new one when they reconnect
 * @property {number} lastHeardAt by the clock of the time in which this process ran
 * @property {number} since when it was introduced
 * @property {number} bytesUntold of requests that came since the last beat to the link
 */

/**
 * @template {Service} S
 * @typedef {LinkFields<S> & import('./lost-requests.ts').Arrivals & import('./answers.ts').Outgoing<S>} LinkState
 */

/**
 * A closed socket has this long to send its goodbyes to a busy peer. A peer that misses its own notices the silence.
 */
export const FAREWELL_MS = 1_000

/**
 * Bytes of requests after which a link is told that they were read, without waiting for its beat: it says no more than
 * some of these at a time (../gateway/unheard.ts).
 */
const HEARD_REPORT_BYTES = 2 ** 19

/**
 * @template {Service} S
 * @param {object} options
 * @param {import('../wire/codec.ts').Codec<S>} options.codec
 * @param {Bind} options.bind
 * @param {() => number} options.now
 * @param {() => number} [options.wallNow] as the clock of time awake has it
 * @param {import('@keycast/service').Every} options.every
 * @param {Pick<import('@keycast/service').Containment, 'guard' | 'caught'>} [options.containment]
 * @param {import('../gateway/link.ts').Log} options.log
 * @returns {Hub<S>}
 */
export function createHub({ codec, bind, containment = noContainment, now, wallNow, every, log }) {
  /** @type {Map<string, LinkState<S>>} */
  const links = new Map()
  const answers = createAnswers({
    codec,
    answersFor: (...of) => events.answersFor(...of),
    send: (/** @type {LinkState<S>} */ link, parts, failed) => sockets.send(link.routingId, parts, failed),
    logAt: () => events.logAt?.(),
    // No peer had that routing id: the gateway is gone, or has new sockets and is told of the loss at its next beat.
    onFailed: link => links.get(link.id) === link && lose(link),
    containment,
    now,
  })
  /** Work that remains for links that were lost. @type {Iterator<unknown>[]} */
  const forgetting = []
  const forgets = createTurns({ now, step: forgetNext })
  /** @type {NodeEvents<S>} */
  let events
  /** @type {Bound} */
  let sockets
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

  /** @param {NodeEvents<S>} nodeEvents */
  async function start(nodeEvents) {
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

  /** @param {Buffer[]} parts */
  function onRequestParts(parts) {
    awake.look()
    const request = decoded(() => decodeRequest(parts, codec))
    if (request) takeRequestOf(request, bytesOf(parts))
  }

  /** @param {Buffer} part @param {Buffer} routingId */
  function onBeatPart(part, routingId) {
    awake.look()
    const message = decoded(() => decodeBeat(part, codec.wire))
    if (message?.type === 'incompatible') onIncompatible(message, routingId)
    else if (message) takeBeatOf(message, routingId)
  }

  /** The loss of a link takes back all that it wanted. @param {{ link: string }} message */
  const loseSender = ({ link: id }) => {
    const link = links.get(id)
    if (link) lose(link)
  }
  const takeRequestOf = containment.guard('link', onRequest, loseSender)
  const takeBeatOf = containment.guard('link', onBeat, loseSender)

  /** @template T @param {() => T} decode @returns {T | undefined} */
  function decoded(decode) {
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

  /** @param {import('../wire/envelope.ts').Incompatible} beat @param {Buffer} routingId */
  function onIncompatible({ link, wire }, routingId) {
    if (isLogDue(`wire ${link}`)) {
      log.error(
        { link, theirs: wire ?? 'none', ours: codec.wire },
        'a gateway speaks another wire version and is not served: run the same release of Keycast on both ends',
      )
    }
    // The gateway can thus log the same. A gateway that names no version would take it for a welcome.
    if (wire !== undefined) say(routingId, { link, reached: 0, answered: 0 })
  }

  /**
   * @param {Exclude<import('../wire/envelope.ts').FromLink, { type: 'incompatible' }>} message
   * @param {Buffer} routingId
   */
  function onBeat(message, routingId) {
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
    link.account.take(message.taken)
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
   * @param {LinkState<S>} link
   * @param {number} announced some of its requests did not come
   */
  async function loseUnlessBehind(link, announced) {
    const { received } = link
    if (!(await sockets.hasReadAll())) return
    if (links.get(link.id) !== link || link.received > received) return
    log.warn({ link: link.id, received, announced }, 'requests were lost on the way')
    lose(link)
  }

  /** @param {import('../wire/envelope.ts').Request<S>} request @param {number} bytes */
  function onRequest({ link: id, number, body }, bytes) {
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
        for (const key of body.keys) events.onUnwatch(id, key)
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
        for (const { id: commandId, command, leftMs = Number.POSITIVE_INFINITY } of body.commands) {
          if (command !== undefined) events.onCommand?.(id, commandId, command, leftMs - waitedMsOf(link))
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
   *
   * @param {LinkState<S>} link
   */
  const waitedMsOf = ({ since }) => (now() - since <= awake.sinceStandstill() ? 0 : waitedMs)

  /** A newer gateway's request counts as heard, or its link would be taken for lossy again and again. */
  function onUnknown(/** @type {string} */ link, /** @type {string} */ kind) {
    if (isLogDue(`kind ${link}`)) {
      log.warn(
        { link, kind: excerpt(kind), ours: codec.wire },
        'a request of an unknown kind was ignored: the gateway is of a newer release',
      )
    }
  }

  /** @param {string} id @param {Buffer} routingId */
  function introduce(id, routingId) {
    /** @type {LinkState<S>} */
    const link = {
      id,
      routingId,
      lastHeardAt: awake.now(),
      since: now(),
      bytesUntold: 0,
      ...createArrivals(),
      ...answers.open(),
    }
    links.set(id, link)
    return link
  }

  /** @param {string} link @param {Buffer} routingId */
  function resync(link, routingId) {
    sockets.send(routingId, [encodeMessage({ type: 'resync', link })], () => {})
  }

  /** @param {LinkState<S>} link */
  function beat(link) {
    sendBeat(link, events.headsFor?.(link.id))
  }

  /** @param {LinkState<S>} link @param {S['Heads']} [heads] */
  function sendBeat(link, heads) {
    link.bytesUntold = 0
    const { id, routingId, received, answered } = link
    say(routingId, { link: id, reached: received, answered, log: events.logId?.(), logAt: events.logAt?.(), heads })
  }

  /**
   * @param {Buffer} routingId
   * @param {{ link: string, reached: number, answered: number, log?: string, logAt?: number, heads?: S['Heads'] }} beat
   */
  function say(routingId, beat) {
    sockets.send(routingId, [encodeMessage({ type: 'beat', wire: codec.wire, ...beat })], () => {})
  }

  /** Forgets the link's wants and asks its gateway to send them again. @param {LinkState<S>} link */
  function lose(link) {
    drop(link)
    resync(link.id, link.routingId)
  }

  /** @param {LinkState<S>} link */
  function drop(link) {
    links.delete(link.id)
    answers.close(link)
    const rest = events.onLinkLost(link.id)
    if (!rest) return
    forgetting.push(rest)
    forgets.start()
  }

  /** @returns {boolean} whether there is more to forget */
  function forgetNext() {
    if (forgetting.length > 0 && forgetting[0].next().done) forgetting.shift()
    return forgetting.length > 0
  }

  /** @param {LinkState<S>} link */
  function farewell(link) {
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
      if (awake.now() - link.lastHeardAt < SILENT_MS) continue
      log.info({ link: link.id }, 'a gateway fell silent')
      drop(link)
    }
  }

  /** @param {string} id @param {string} key */
  function tell(id, key) {
    const link = links.get(id)
    if (link) answers.tell(link, key)
  }

  /** @param {string} id @param {string} commandId @param {S['Result']} result */
  function tellResult(id, commandId, result) {
    const link = links.get(id)
    if (link) answers.tellResult(link, { id: commandId, result }) // otherwise its gateway repeats the command
  }

  function stats() {
    let dueKeys = 0
    for (const link of links.values()) dueKeys += link.due.size
    return { links: links.size, dueKeys, bytesOut: answers.bytesOut() }
  }

  return { start, stop, tell, tellResult, stats }
}
