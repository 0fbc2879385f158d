// A gateway's link to one fetcher node: says what the gateway wants there, notices when anything of that or of the
// answers was lost, and then says it all again under a new id. Knows no sockets: those come from `dial`.
import { randomBytes } from 'node:crypto'
import { BEAT_MS, everyMeasured, SILENT_MS } from '@keycast/service'
import { encodeMessage } from '../wire/envelope.js'
import { createInterests } from './wants.js'

/**
 * @typedef {import('../backbone.js').Answer} Answer
 * @typedef {import('../backbone.js').Held} Held
 * @typedef {import('../wire/envelope.js').Answers} Answers
 * @typedef {import('../wire/envelope.js').FromHub} FromHub
 *
 * A pair of sockets to the node. `request` resolves when the socket took the message and rejects when the pair was
 * closed; `beat` may drop what cannot be sent now.
 * @typedef {{ request: (part: Buffer) => Promise<void>, beat: (part: Buffer) => void, close: () => void }} Dialled
 *
 * What a message from the node calls. `bytes` is what the whole message weighed.
 * @typedef {{ message: (message: FromHub, bytes: number) => void, damaged: (error: Error) => void }} FromNode
 * @typedef {(events: FromNode) => Dialled} Dial
 *
 * @typedef {object} LinkEvents
 * @property {(key: string) => Held | undefined} held
 * @property {(answer: Answer, isFetched: boolean) => void} onAnswer as {@link import('../backbone.js').BackboneEvents}
 * @property {() => void} onAlive
 * @property {() => void} onDead the node fell silent, took its leave, or never spoke; the link goes on trying
 */

/** Bytes taken after which a gateway reports them without waiting for its beat. */
const TAKEN_REPORT_BYTES = 2 ** 20

/** @param {{ dial: Dial, events: LinkEvents, now: () => number, every: import('@keycast/service').Every, log: Log }} options */
export function createLink({ dial, events, now, every, log }) {
  const interests = createInterests({ held: events.held })

  /** @type {Dialled | undefined} */
  let sockets
  let id = ''
  let sent = 0 // requests taken by the socket: only they may be announced
  let answered = 0 // messages of answers received under this id
  let taken = 0 // their bytes
  let takenReported = 0
  let introduced = false // a beat came back under this id: the hub knows it
  let alive = false
  let writing = false
  let lastHeardAt = 0
  let dialledAt = Number.NEGATIVE_INFINITY
  let stopBeats = () => {}

  function start() {
    lastHeardAt = now()
    redial()
    stopBeats = everyMeasured({ periodMs: BEAT_MS, every, now, tick: onBeatDue })
  }

  function stop() {
    stopBeats()
    // Whatever was wanted here is not kept fresh for nobody until the node notices the silence.
    sockets?.beat(encodeMessage({ type: 'bye', link: id }))
    hangUp()
  }

  /** What is under way on the sockets belongs to nobody from here on. */
  function hangUp() {
    sockets?.close()
    sockets = undefined
    id = ''
    introduced = false
  }

  /**
   * New sockets and a new id. At the next beat where the last ones are younger than one: what goes wrong each time, as
   * with a node that speaks another version, shall not cost saying everything as fast as the machines can.
   */
  function redial() {
    // A node that never gets as far as a beat is silent, whatever else it says: its keys shall go to another.
    if (introduced) lastHeardAt = now()
    hangUp()
    if (now() - dialledAt >= BEAT_MS) connect()
  }

  function connect() {
    id = randomBytes(9).toString('base64url')
    sent = 0
    answered = 0
    taken = 0
    takenReported = 0
    interests.startAnew()
    dialledAt = now()
    const current = id
    sockets = dial({
      message: (message, bytes) => {
        if (current === id) onMessage(message, bytes)
      },
      damaged: error => {
        if (current !== id) return
        log.warn({ error: error.message }, 'a damaged message came from the fetcher: starting the link anew')
        redial()
      },
    })
    beat()
  }

  function beat() {
    takenReported = taken
    sockets?.beat(encodeMessage({ type: 'beat', link: id, number: sent, taken }))
  }

  /** @param {number} standstillMs of this process */
  function onBeatDue(standstillMs) {
    if (standstillMs > 0) lastHeardAt = now()
    if (now() - lastHeardAt < SILENT_MS) return sockets ? beat() : connect()
    // Fresh sockets even if it was dead before: a connection whose packets are swallowed never heals by itself, and
    // TCP takes minutes to give it up.
    if (alive) log.warn('the fetcher node fell silent')
    die()
  }

  function die() {
    alive = false
    lastHeardAt = now()
    redial()
    events.onDead()
  }

  /** @param {FromHub} message @param {number} bytes */
  function onMessage(message, bytes) {
    if (message.link !== id) return
    lastHeardAt = now()
    switch (message.type) {
      case 'resync':
        log.info('the fetcher missed something: saying everything again')
        return redial()
      case 'bye':
        return die()
      case 'beat':
        return onBeat(message)
      case 'answers':
        return onAnswers(message, bytes)
    }
  }

  /** @param {import('../wire/envelope.js').HubBeat} beat */
  function onBeat(beat) {
    if (beat.answered > answered) return lost(beat.answered)
    interests.confirm(beat.reached)
    introduced = true
    if (!alive) {
      alive = true
      events.onAlive()
    }
    flush()
  }

  /** @param {Answers} message @param {number} bytes */
  function onAnswers(message, bytes) {
    if (message.number !== answered + 1) return lost(message.number)
    answered = message.number
    taken += bytes
    if (taken - takenReported >= TAKEN_REPORT_BYTES) {
      takenReported = taken
      sockets?.beat(encodeMessage({ type: 'taken', link: id, taken }))
    }
    for (const answer of message.answers) {
      const what = interests.take(answer.key, message.reached)
      if (what !== 'earlier') events.onAnswer(answer, what === 'fetched')
    }
  }

  /** @param {number} answeredByHub */
  function lost(answeredByHub) {
    log.warn({ received: answered, sent: answeredByHub }, 'answers were lost on the way: starting the link anew')
    redial()
  }

  /** Says what differs, once per turn of the loop, as fast as the socket takes it. */
  async function flush() {
    if (writing) return
    writing = true
    await undefined // lets the turn's other wants join
    while (introduced && !interests.isAllSaid()) {
      const current = id
      const dialled = /** @type {Dialled} */ (sockets)
      try {
        for (const request of interests.nextRequests(id)) {
          await dialled.request(encodeMessage(request))
          if (current === id) sent = request.number
        }
      } catch (error) {
        // The pair was closed while it waited; if it still is the current one, the node is not reading.
        if (current !== id) continue
        log.debug(
          { error: /** @type {Error} */ (error).message },
          'a request could not be sent: starting the link anew',
        )
        redial()
      }
    }
    writing = false
  }

  /** @param {string} key @param {Partial<import('./wants.js').Interest>} change */
  function want(key, change) {
    interests.want(key, change)
    flush()
  }

  return {
    start,
    stop,
    /** @param {string} key */
    watch: key => want(key, { watch: true }),
    /** @param {string} key */
    unwatch: key => want(key, { watch: false }),
    /** @param {string} key */
    fetch: key => want(key, { fetch: true }),
    /** @param {string} key */
    cancel: key => want(key, { fetch: false }),
    /** Drops every interest in the key: another node owns it now. @param {string} key */
    drop: key => want(key, { watch: false, fetch: false }),
    /**
     * Calls `done` once the node has it. @param {string[]} keys at most KEYS_PER_REQUEST_MAX @param {() => void} done
     * @returns {() => void} takes it back
     */
    refresh(keys, done) {
      const takeBack = interests.refresh(keys, done)
      flush()
      return takeBack
    },
    get alive() {
      return alive
    },
  }
}

/**
 * @typedef {ReturnType<typeof createLink>} Link
 * @typedef {Pick<import('pino').Logger, 'debug' | 'info' | 'warn' | 'error'>} Log
 */
