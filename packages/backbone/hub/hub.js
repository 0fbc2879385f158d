// A fetcher node's side of its links: who wants what, whether anything was lost, and how much each gateway may be sent.
// Knows no sockets: those come from `bind`.
import { BEAT_MS, everyMeasured, SILENT_MS } from '@keycast/service'
import { encodeAnswers, encodeMessage } from '../wire/envelope.js'

/**
 * @typedef {import('../backbone.js').HubEvents} HubEvents
 * @typedef {import('../wire/envelope.js').Request} Request
 * @typedef {import('../wire/envelope.js').FromLink} FromLink
 *
 * The bound sockets. `send` queues parts for whoever has the routing id; it calls `failed` if nobody does. `close`
 * lets what was queued leave first, as far as its receivers take it.
 * @typedef {{ send: (routingId: Buffer, parts: Buffer[], failed: () => void) => void, close: () => Promise<void> }} Bound
 * @typedef {{ request: (request: Request) => void, beat: (message: FromLink, routingId: Buffer) => void }} FromGateways
 * @typedef {(events: FromGateways) => Promise<Bound>} Bind
 *
 * @typedef {object} LinkState
 * @property {string} id
 * @property {Buffer} routingId of its latest beat: a gateway's sockets get a new one when they reconnect
 * @property {number} received requests
 * @property {number} announced requests sent, as of its latest beat
 * @property {number} receivedAtBeat `received`, at its latest beat
 * @property {number} answered messages of answers sent
 * @property {number} sentBytes
 * @property {number} takenBytes
 * @property {number} lastHeardAt
 * @property {Set<string>} lacking keys whose latest state it has not been sent
 */

/** How long a closed socket may take to send its last words. Who does not take them hears of the end by the silence. */
export const FAREWELL_MS = 200

/** Bytes of answers on their way to one gateway before the rest waits as a set of keys. */
export const CREDIT_BYTES = 8 * 2 ** 20

/** Small answers leave together up to this size: at 100 bytes each that is several times faster than one by one. */
const BATCH_BYTES = 64 * 1024

/** What an answer weighs beside its body, so that answers without one count too. */
const HEAD_BYTES = 256

/** @param {{ bind: Bind, now: () => number, every: import('@keycast/service').Every, log: import('../gateway/link.js').Log }} options
 * @returns {import('../backbone.js').Hub} */
export function createHub({ bind, now, every, log }) {
  /** @type {Map<string, LinkState>} */
  const links = new Map()
  /** Links to be sent something at the end of this turn. @type {Set<LinkState>} */
  const due = new Set()
  /** @type {HubEvents} */
  let events
  /** @type {Bound} */
  let sockets
  let stopSweep = () => {}
  let stopped = false
  /** When this process last found that it had stood still. */
  let lateAt = Number.NEGATIVE_INFINITY

  /** @param {HubEvents} hubEvents */
  async function start(hubEvents) {
    events = hubEvents
    sockets = await bind({ request: onRequest, beat: onBeat })
    stopSweep = everyMeasured({ periodMs: BEAT_MS, every, now, tick: sweep })
  }

  async function stop() {
    stopped = true
    stopSweep()
    // Their keys go to other nodes at once, instead of after the silence that tells of a death.
    for (const { id, routingId } of links.values()) {
      sockets.send(routingId, [encodeMessage({ type: 'bye', link: id })], () => {})
    }
    await sockets?.close()
  }

  /** @param {FromLink} message @param {Buffer} routingId */
  function onBeat(message, routingId) {
    let link = links.get(message.link)
    if (message.type === 'bye') return link && farewell(link)
    if (!link) {
      if (message.type === 'taken') return
      // A link that has said something and is not known here was lost, or belongs to an earlier incarnation of this hub.
      if (message.number > 0) return resync(message.link, routingId)
      link = introduce(message.link, routingId)
    }
    link.routingId = routingId
    link.lastHeardAt = now()
    link.takenBytes = Math.max(link.takenBytes, message.taken)
    if (message.type === 'beat') {
      // Behind is not lost: requests come by another socket, thousands of keys may wait in it, and each takes its time. One
      // that stands still from one beat to the next has nothing waiting here; unless it was this process that stood still.
      const isStanding = link.received === link.receivedAtBeat && now() - lateAt >= BEAT_MS
      if (link.announced > link.received && isStanding) {
        log.warn({ link: link.id, received: link.received, announced: link.announced }, 'requests were lost on the way')
        return lose(link)
      }
      link.announced = message.number
      link.receivedAtBeat = link.received
      beat(link)
    }
    if (link.lacking.size > 0) schedule(link)
  }

  /** @param {Request} request */
  function onRequest(request) {
    const link = links.get(request.link)
    if (!link) return // its next beat is answered with resync
    if (request.number !== link.received + 1) {
      log.warn({ link: link.id, received: link.received, number: request.number }, 'requests were lost on the way')
      return lose(link)
    }
    link.lastHeardAt = now()
    link.received = request.number
    switch (request.type) {
      case 'watch':
        for (const want of request.wants) events.onWatch(link.id, want)
        break
      case 'fetch':
        for (const want of request.wants) events.onFetch(link.id, want)
        break
      case 'unwatch':
        for (const key of request.keys) events.onUnwatch(link.id, key)
        break
      case 'cancel':
        for (const key of request.keys) events.onCancel(link.id, key)
        break
      case 'refresh':
        for (const key of request.keys) events.onRefresh(key)
        beat(link) // somebody waits to hear that this node has it
        break
    }
  }

  /** @param {string} id @param {Buffer} routingId */
  function introduce(id, routingId) {
    const link = {
      id,
      routingId,
      received: 0,
      announced: 0,
      receivedAtBeat: 0,
      answered: 0,
      sentBytes: 0,
      takenBytes: 0,
      lastHeardAt: now(),
      /** @type {Set<string>} */
      lacking: new Set(),
    }
    links.set(id, link)
    return link
  }

  /** @param {string} link @param {Buffer} routingId */
  function resync(link, routingId) {
    sockets.send(routingId, [encodeMessage({ type: 'resync', link })], () => {})
  }

  /** @param {LinkState} link */
  function beat(link) {
    const { id, received, answered, routingId } = link
    sockets.send(routingId, [encodeMessage({ type: 'beat', link: id, reached: received, answered })], () => {})
  }

  /** Forgets what the link said and asks its gateway to say it again. @param {LinkState} link */
  function lose(link) {
    drop(link)
    resync(link.id, link.routingId)
  }

  /** @param {LinkState} link */
  function drop(link) {
    links.delete(link.id)
    due.delete(link)
    events.onLinkLost(link.id)
  }

  /** @param {LinkState} link */
  function farewell(link) {
    log.info({ link: link.id }, 'a gateway took its leave')
    drop(link)
  }

  /** @param {number} standstillMs of this process */
  function sweep(standstillMs) {
    const late = standstillMs > 0
    if (late) lateAt = now()
    for (const link of links.values()) {
      if (late) link.lastHeardAt = now()
      else if (now() - link.lastHeardAt >= SILENT_MS) {
        log.info({ link: link.id }, 'a gateway fell silent')
        drop(link)
      }
    }
  }

  /** @param {string} id @param {string} key */
  function tell(id, key) {
    const link = links.get(id)
    if (!link) return
    link.lacking.add(key)
    schedule(link)
  }

  /** @param {LinkState} link */
  function schedule(link) {
    if (due.size === 0) setImmediate(sendDue)
    due.add(link)
  }

  function sendDue() {
    if (stopped) return
    for (const link of due) {
      due.delete(link)
      while (link.lacking.size > 0 && link.sentBytes - link.takenBytes < CREDIT_BYTES) sendBatch(link)
    }
  }

  /** @param {LinkState} link */
  function sendBatch(link) {
    const answers = []
    let batchBytes = 0
    for (const key of link.lacking) {
      if (batchBytes >= BATCH_BYTES) break
      link.lacking.delete(key)
      const answer = events.answerFor(link.id, key)
      if (!answer) continue
      answers.push(answer)
      batchBytes += HEAD_BYTES
      if (answer.type === 'value') batchBytes += answer.body.length + (answer.delta?.bytes.length ?? 0)
    }
    if (answers.length === 0) return
    link.answered++
    const parts = encodeAnswers({ link: link.id, number: link.answered, reached: link.received }, answers)
    link.sentBytes += bytesOf(parts)
    sockets.send(link.routingId, parts, () => {
      // Sent to nobody: the gateway is gone, or has new sockets and will hear of the gap by its next beat.
      if (links.get(link.id) === link) lose(link)
    })
  }

  function stats() {
    let lackingKeys = 0
    let bytesOut = 0
    for (const link of links.values()) {
      lackingKeys += link.lacking.size
      bytesOut += link.sentBytes - link.takenBytes
    }
    return { links: links.size, lackingKeys, bytesOut }
  }

  return { start, stop, tell, stats }
}

/** @param {Buffer[]} parts */
export function bytesOf(parts) {
  let bytes = 0
  for (const part of parts) bytes += part.length
  return bytes
}
