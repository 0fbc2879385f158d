// A gateway's link to one fetcher node: says what the gateway wants there, notices when anything of that or of the
// answers was lost, and then says it all again under a new id. Knows no sockets: those come from `dial`.
import { randomBytes } from 'node:crypto'
import { everyPunctually } from './punctual.js'
import { encodeMessage, KEYS_PER_REQUEST_MAX } from './wire.js'

/**
 * @typedef {import('./backbone.js').Answer} Answer
 * @typedef {import('./backbone.js').Held} Held
 * @typedef {import('./wire.js').Answers} Answers
 *
 * A pair of sockets to the node. `request` resolves when the socket took the message and rejects when the pair was
 * closed; `beat` may drop what cannot be sent now.
 * @typedef {{ request: (part: Buffer) => Promise<void>, beat: (part: Buffer) => void, close: () => void }} Dialled
 *
 * What a message from the node calls. `bytes` is what the whole message weighed.
 * @typedef {{ message: (message: import('./wire.js').HubBeat | import('./wire.js').Resync | Answers, bytes: number) => void,
 *   damaged: (error: Error) => void }} FromNode
 * @typedef {(events: FromNode) => Dialled} Dial
 *
 * @typedef {object} LinkEvents
 * @property {(key: string) => Held | undefined} held
 * @property {(answer: Answer) => void} onAnswer
 * @property {() => void} onAlive
 * @property {() => void} onDead the node fell silent, or never spoke; the link goes on trying
 *
 * What the gateway wants of a key here, and what the hub has been told under the present id. `since`: number of the
 * request from which on the hub knew the key; answers made before it belong to an earlier interest.
 * @typedef {{ watch: boolean, fetch: boolean }} Interest
 * @typedef {{ watch: boolean, fetch: boolean, since: number, fetchNumber: number }} Said
 */

/** Both sides beat this often. */
export const BEAT_MS = 1_000

/** A peer silent for this long is dead: three beats, so that one late beat is no death. */
export const SILENT_MS = 3_000

/** Bytes taken after which a gateway reports them without waiting for its beat. */
export const TAKEN_REPORT_BYTES = 2 ** 20

/** @param {{ dial: Dial, events: LinkEvents, now: () => number, every: import('./punctual.js').Every, log: Log }} options */
export function createLink({ dial, events, now, every, log }) {
  /** @type {Map<string, Interest>} */
  const interests = new Map()
  /** @type {Map<string, Said>} */
  const said = new Map()
  /** Keys whose interest and what was said of it may differ. @type {Set<string>} */
  const dirty = new Set()
  /** @type {Set<Refresh>} */
  const refreshes = new Set()

  /** @type {Dialled | undefined} */
  let sockets
  let id = ''
  let number = 0 // of requests made under this id
  let sent = 0 // of those, taken by the socket: only they may be announced
  let answered = 0 // messages of answers received under this id
  let taken = 0 // their bytes
  let takenReported = 0
  let introduced = false // a beat came back under this id: the hub knows it
  let alive = false
  let writing = false
  let lastHeardAt = 0
  let stopBeats = () => {}

  function start() {
    redial()
    stopBeats = everyPunctually({ periodMs: BEAT_MS, every, now, tick: onBeatDue })
  }

  function stop() {
    stopBeats()
    sockets?.close()
    sockets = undefined
  }

  /** New sockets and a new id: whatever was under way on the old ones belongs to nobody. */
  function redial() {
    sockets?.close()
    id = randomBytes(9).toString('base64url')
    number = 0
    sent = 0
    answered = 0
    taken = 0
    takenReported = 0
    introduced = false
    said.clear()
    for (const key of interests.keys()) dirty.add(key)
    for (const refresh of refreshes) refresh.number = 0
    lastHeardAt = now()
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

  /** @param {boolean} late */
  function onBeatDue(late) {
    if (late) lastHeardAt = now()
    if (now() - lastHeardAt < SILENT_MS) return beat()
    const died = alive
    alive = false
    // Fresh sockets even if it was dead before: a connection whose packets are swallowed never heals by itself, and
    // TCP takes minutes to give it up.
    redial()
    if (died) log.warn('the fetcher node fell silent')
    events.onDead()
  }

  /** @param {Parameters<FromNode['message']>[0]} message @param {number} bytes */
  function onMessage(message, bytes) {
    if (message.link !== id) return
    lastHeardAt = now()
    switch (message.type) {
      case 'resync':
        log.info('the fetcher missed something: saying everything again')
        return redial()
      case 'beat':
        return onBeat(message)
      case 'answers':
        return onAnswers(message, bytes)
    }
  }

  /** @param {import('./wire.js').HubBeat} beat */
  function onBeat(beat) {
    if (beat.answered > answered) return lost(beat.answered)
    for (const refresh of refreshes) {
      if (refresh.number > 0 && refresh.number <= beat.reached) {
        refreshes.delete(refresh)
        refresh.done()
      }
    }
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
    for (const answer of message.answers) take(answer, message.reached)
  }

  /** @param {Answer} answer @param {number} reached */
  function take(answer, reached) {
    const told = said.get(answer.key)
    if (!told || reached < told.since) return // from an interest that ended before the present one began
    if (told.fetch && reached >= told.fetchNumber) {
      told.fetch = false
      const interest = interests.get(answer.key)
      if (interest) interest.fetch = false
      forgetIfIdle(answer.key)
    }
    events.onAnswer(answer)
  }

  /** @param {number} answeredByHub */
  function lost(answeredByHub) {
    log.warn({ received: answered, sent: answeredByHub }, 'answers were lost on the way: starting the link anew')
    redial()
  }

  /** @param {string} key @param {Partial<Interest>} change */
  function want(key, change) {
    const interest = interests.get(key) ?? { watch: false, fetch: false }
    interests.set(key, Object.assign(interest, change))
    dirty.add(key)
    forgetIfIdle(key)
    flush()
  }

  /** @param {string} key */
  function forgetIfIdle(key) {
    const interest = interests.get(key)
    if (interest && !interest.watch && !interest.fetch) interests.delete(key)
    const told = said.get(key)
    if (told && !told.watch && !told.fetch && !interests.has(key)) said.delete(key)
  }

  /** Says what differs, once per turn of the loop, as fast as the socket takes it. */
  async function flush() {
    if (writing) return
    writing = true
    await undefined // lets the turn's other wants join
    while (introduced && (dirty.size > 0 || unsaidRefresh())) {
      const current = id
      const dialled = /** @type {Dialled} */ (sockets)
      try {
        for (const request of nextRequests()) {
          await dialled.request(encodeMessage(request))
          if (current === id) sent = request.number
        }
      } catch (error) {
        // The pair was closed while it waited; if it still is the current one, the node is not reading.
        if (current === id) {
          log.debug(
            { error: /** @type {Error} */ (error).message },
            'a request could not be sent: starting the link anew',
          )
          redial()
        }
      }
    }
    writing = false
  }

  /** @returns {Refresh | undefined} */
  function unsaidRefresh() {
    for (const refresh of refreshes) if (refresh.number === 0) return refresh
    return undefined
  }

  /** The next requests, of which none names more keys than a message may. Sets down as said what they say. */
  function* nextRequests() {
    /** @type {{ watch: string[], fetch: string[], unwatch: string[], cancel: string[] }} */
    const keys = { watch: [], fetch: [], unwatch: [], cancel: [] }
    let count = 0
    for (const key of dirty) {
      if (count++ === KEYS_PER_REQUEST_MAX) break
      dirty.delete(key)
      const interest = interests.get(key)
      const told = said.get(key)
      if (interest?.watch && !told?.watch) keys.watch.push(key)
      if (!interest?.watch && told?.watch) keys.unwatch.push(key)
      if (interest?.fetch && !told?.fetch) keys.fetch.push(key)
      if (!interest?.fetch && told?.fetch) keys.cancel.push(key)
    }
    const link = id
    for (const type of /** @type {const} */ (['unwatch', 'cancel'])) {
      if (keys[type].length === 0 || link !== id) continue
      number++
      for (const key of keys[type]) noteUnsaid(key, type)
      yield { type, link, number, keys: keys[type] }
    }
    for (const type of /** @type {const} */ (['watch', 'fetch'])) {
      if (keys[type].length === 0 || link !== id) continue
      number++
      for (const key of keys[type]) noteSaid(key, type)
      yield { type, link, number, wants: keys[type].map(key => ({ key, held: events.held(key) })) }
    }
    const refresh = unsaidRefresh()
    if (refresh && link === id) {
      refresh.number = ++number
      yield { type: /** @type {const} */ ('refresh'), link, number, keys: refresh.keys }
    }
  }

  /** @param {string} key @param {'watch' | 'fetch'} type */
  function noteSaid(key, type) {
    const told = said.get(key) ?? { watch: false, fetch: false, since: number, fetchNumber: 0 }
    told[type] = true
    if (type === 'fetch') told.fetchNumber = number
    said.set(key, told)
  }

  /** @param {string} key @param {'unwatch' | 'cancel'} type */
  function noteUnsaid(key, type) {
    const told = said.get(key)
    if (!told) return
    if (type === 'unwatch') told.watch = false
    else told.fetch = false
    if (!told.watch && !told.fetch) said.delete(key)
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
      const refresh = { keys, done, number: 0 }
      refreshes.add(refresh)
      flush()
      return () => refreshes.delete(refresh)
    },
    /** Whether that key's `fetch` is still to be answered. @param {string} key */
    fetching: key => interests.get(key)?.fetch === true,
    get alive() {
      return alive
    },
  }
}

/**
 * @typedef {{ keys: string[], done: () => void, number: number }} Refresh `number` 0: not said under the present id
 * @typedef {ReturnType<typeof createLink>} Link
 * @typedef {Pick<import('pino').Logger, 'debug' | 'info' | 'warn' | 'error'>} Log
 */
