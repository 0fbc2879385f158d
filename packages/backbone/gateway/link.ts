// A gateway's link to one node. It tells the node the gateway's wants, notices any loss of wants or answers, and then
// sends them all again under a new id. It knows neither sockets, which come from `dial`, nor the content, which the
// codec knows.
import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { BEAT_MS, createAwakeClock, createOnceAMinute, noContainment, SILENT_MS, TURN_MS } from '@keycast/service'
import { bytesOf } from '../wire/bytes.ts'
import { WireError } from '../wire/codec.ts'
import { decodeFromHub, encodeMessage, encodeRequest } from '../wire/envelope.ts'
import { createProgress } from './progress.ts'
import { createRequests } from './requests.ts'
import { createUnheard } from './unheard.ts'

/**
 * @typedef {import('../wire/codec.ts').Service} Service
 *
 * A pair of sockets to the node. `request` resolves to true when the socket took the message, to false when it had no
 * room for it in time, and rejects when the pair was closed; `beat` may drop what cannot be sent now.
 * @typedef {{ request: (parts: Buffer[]) => Promise<boolean>, beat: (part: Buffer) => void, close: () => void }} Dialled
 * @typedef {(message: (parts: Buffer[]) => void) => Dialled} Dial calls `message` for each message from the node
 */

/**
 * @template {Service} S
 * @typedef {object} LinkEvents
 * @property {(key: string) => S['Position'] | undefined} position the gateway's position in the key; looked up when a
 *   want is sent
 * @property {import('./wants.ts').PayloadOf<S>} [payload] other fields of a want; looked up likewise
 * @property {(answer: S['Answer'], isGot: boolean) => void} onAnswer `isGot`: it answers and ends the key's get
 * @property {(heads: S['Heads']) => void} [onHeads] the node's progress when it sent a beat: comes after all answers
 *   before it
 * @property {(log: string | undefined, logAt: number | undefined) => boolean} [admits] whether the node is used that
 *   answers from this log, which has come so far
 * @property {(logAt: number) => void} [onLogAt] its log has come so far
 * @property {() => { log: string, logAt: number } | undefined} [logBefore] what the node must be told: of its log, which
 *   has gone back
 * @property {() => void} onAlive
 * @property {() => void} onDead the node fell silent, said goodbye, never spoke or cannot be understood; the link keeps
 *   trying
 */

/**
 * Bytes taken after which a gateway reports them without waiting for its beat. A node that shares its credit among a
 * hundred gateways gives each some 600 KiB.
 */
const TAKEN_REPORT_BYTES = 2 ** 18

/** Precision of a command's deadline. */
const DEADLINE_CHECK_MS = 100

/**
 * @template {Service} S
 * @param {object} options
 * @param {import('../wire/codec.ts').Codec<S>} options.codec
 * @param {Dial} options.dial
 * @param {LinkEvents<S>} options.events
 * @param {() => number} options.now
 * @param {import('@keycast/service').Every} options.every
 * @param {Pick<import('@keycast/service').Containment, 'guard' | 'caught'>} [options.containment]
 * @param {Log} options.log
 */
export function createLink({ codec, dial, events, containment = noContainment, now, every, log }) {
  /** @type {ReturnType<typeof createRequests<S>>} */
  const requests = createRequests({ position: events.position, payload: events.payload, now })
  const { wants, notices, commands } = requests
  const awake = createAwakeClock({ periodMs: BEAT_MS, every, now })
  const progress = createProgress({ now: awake.now })
  const unheard = createUnheard()
  const isLogDue = createOnceAMinute(now)

  /** @type {Dialled | undefined} */
  let sockets
  let id = ''
  let sent = 0 // requests taken by the socket: only they may be announced
  let reached = 0 // requests the node has heard, as of its last beat
  let answered = 0 // messages of answers received under this id
  let taken = 0 // their bytes
  let takenReported = 0
  let introduced = false // a beat came back under this id: the hub knows the link
  let alive = false
  let isSetAside = false // the node's last beat had another wire version, or another log than the one in use
  /**
   * A key that the node must answer for before it counts as alive again: its answers could not be read.
   *
   * @type {string | undefined}
   */
  let sample
  let probedId = '' // the id under which the node was last probed
  let writing = false
  let isFlushDue = false
  let lastHeardAt = 0 // by `awake`
  let dialledAt = Number.NEGATIVE_INFINITY
  let stopDeadlines = () => {}
  let hasDeadlines = false

  function start() {
    lastHeardAt = awake.now()
    redial()
    awake.start(onBeatDue)
  }

  function stop() {
    awake.stop()
    // Without this message the node would keep this gateway's keys fresh until it notices the silence.
    sockets?.beat(encodeMessage({ type: 'bye', link: id }))
    hangUp()
    commands.stop()
    expire()
  }

  /** From here on, messages still under way on the sockets are ignored. */
  function hangUp() {
    sockets?.close()
    sockets = undefined
    id = ''
    introduced = false
  }

  /**
   * Opens new sockets under a new id; not before the next beat if the last ones are younger than one. A fault that
   * returns each time must not repeat all wants as fast as the machines can.
   */
  function redial() {
    // A node that never sends a beat counts as silent, whatever else it sends: its keys must go to another.
    if (introduced) lastHeardAt = awake.now()
    hangUp()
    if (now() - dialledAt >= BEAT_MS) connect()
  }

  function connect() {
    id = randomBytes(9).toString('base64url')
    sent = 0
    reached = 0
    answered = 0
    taken = 0
    takenReported = 0
    requests.startAnew()
    unheard.startAnew()
    dialledAt = now()
    const current = id
    sockets = dial(parts => {
      if (current === id) onParts(parts)
    })
    beat()
  }

  function beat() {
    takenReported = taken
    sockets?.beat(
      encodeMessage({ type: 'beat', link: id, wire: codec.wire, number: sent, taken, ...events.logBefore?.() }),
    )
  }

  function onBeatDue() {
    if (alive && progress.isUnheard()) return onRequestsUnheard()
    if (awake.now() - lastHeardAt < SILENT_MS) return sockets ? beat() : connect()
    // Opens fresh sockets even if the node was dead before: a connection whose packets are swallowed never heals by
    // itself, and TCP takes minutes to give it up.
    if (alive) log.warn('the node fell silent')
    die()
  }

  function onRequestsUnheard() {
    log.warn('the node beats and hears no requests')
    progress.demand('request')
    die()
  }

  function onRequestLost() {
    if (alive && progress.onRequestLost()) onRequestsUnheard()
    else redial()
  }

  function onAnswersLost() {
    const isOfNoUse = progress.onAnswersLost()
    if (!alive || !isOfNoUse) return redial()
    log.warn('the node beats and none of its answers can be read')
    sample = wants.sample()
    progress.demand(sample === undefined ? 'request' : 'answer')
    die()
  }

  function die() {
    alive = false
    isSetAside = false
    lastHeardAt = awake.now()
    redial()
    events.onDead()
  }

  /** @param {Buffer[]} parts */
  function onParts(parts) {
    let message
    try {
      message = decodeFromHub(parts, codec)
    } catch (error) {
      if (error instanceof WireError) {
        log.warn({ error: error.message }, 'a damaged message came from the node: starting the link anew')
      } else containment.caught('link', error)
      return onAnswersLost()
    }
    if (message.link === id) apply(message, parts)
  }

  // An answer is for all who want its key, and no loss of the link takes it back.
  const apply = containment.guard('link', take, redial, { isForAll: true })

  /** @param {import('../wire/envelope.ts').FromHub<S>} message @param {Buffer[]} parts it came in */
  function take(message, parts) {
    lastHeardAt = awake.now()
    switch (message.type) {
      case 'resync':
        log.info('the node missed something: saying everything again')
        return onRequestLost()
      case 'bye':
        return die()
      case 'incompatible':
        return onIncompatible(message.wire)
      case 'beat':
        return onBeat(message)
      case 'answers':
        return onAnswers(message, bytesOf(parts))
    }
  }

  /** @param {string | undefined} wire */
  function onIncompatible(wire) {
    if (isLogDue('wire')) {
      log.error(
        { theirs: wire ?? 'none', ours: codec.wire },
        'the node speaks another wire version and is not used: run the same release of Keycast on both ends',
      )
    }
    setAside()
  }

  /** The node is not used. The sockets stay: another one may take its place behind them. */
  function setAside() {
    if (introduced) redial() // one that could be used went, and its place was taken
    if (isSetAside) return
    isSetAside = true
    alive = false
    events.onDead()
  }

  /** @param {import('../wire/envelope.ts').HubBeat<S>} beat */
  function onBeat(beat) {
    if (events.admits?.(beat.log, beat.logAt) === false) return setAside()
    if (beat.answered > answered) return lost(beat.answered)
    progress.onBeat({ hasHeardMore: beat.reached > reached, isAllHeard: requests.isAllHeard(beat.reached) })
    reached = beat.reached
    notices.confirm(reached)
    unheard.confirm(reached)
    introduced = true
    isSetAside = false
    if (progress.proof) {
      if (probedId !== id && requests.isAllSaid()) {
        probedId = id
        requests.probe(progress.proof === 'answer' ? sample : undefined)
      }
    } else if (!alive) {
      alive = true
      sample = undefined
      events.onAlive()
    }
    if (beat.heads !== undefined) events.onHeads?.(beat.heads)
    flush()
  }

  /** @param {import('../wire/envelope.ts').Answers<S>} message @param {number} bytes */
  function onAnswers(message, bytes) {
    if (message.number !== answered + 1) return lost(message.number)
    answered = message.number
    progress.onAnswers()
    taken += bytes
    if (taken - takenReported >= TAKEN_REPORT_BYTES) {
      takenReported = taken
      sockets?.beat(encodeMessage({ type: 'taken', link: id, taken }))
    }
    for (const answer of message.answers) {
      if (answer === undefined) onUnknownAnswer()
      else {
        const what = wants.take(answer.key, message.reached)
        if (what !== 'earlier') events.onAnswer(answer, what === 'got')
      }
    }
    if (message.logAt !== undefined) events.onLogAt?.(message.logAt)
    for (const each of message.results) {
      commands.end(each.id, each.isRefused ? { type: 'refused' } : { type: 'result', result: each.result })
    }
  }

  function onUnknownAnswer() {
    if (isLogDue('answer'))
      log.warn({ ours: codec.wire }, 'an answer of an unknown kind was skipped: the node is of a newer release')
  }

  /** @param {number} answeredByHub */
  function lost(answeredByHub) {
    log.warn({ received: answered, sent: answeredByHub }, 'answers were lost on the way: starting the link anew')
    onAnswersLost()
  }

  /**
   * Gives a request to the socket.
   *
   * @param {Buffer[]} parts @param {string} current the id that it is sent under
   * @returns {Promise<boolean>} whether it was taken while that was the link's id; if not, all is sent anew
   */
  async function wasTaken(parts, current) {
    const dialled = /** @type {Dialled} */ (sockets)
    try {
      while (current === id && !(await dialled.request(parts))) {
        if (current !== id) return false
        // A node that hears some requests is busy: a repetition would only give it the same requests twice.
        if (!alive) redial()
        else if (progress.onNoRoom()) onRequestsUnheard()
      }
    } catch (error) {
      if (current !== id) return false // the pair was closed while it waited
      log.debug({ error: /** @type {Error} */ (error).message }, 'a request could not be sent: starting the link anew')
      redial()
    }
    return current === id
  }

  /** Sends the differences, once per turn of the loop, as fast as the socket takes them and the node reads them. */
  async function flush() {
    if (writing) return
    writing = true
    await undefined // the turn's other wants join
    let turnEndsAt = now() + TURN_MS
    // If too much is unheard, the next beat that reports progress continues this.
    while (introduced && !requests.isAllSaid() && !unheard.isFull()) {
      const current = id
      for (const { number, saying } of requests.nextRequests()) {
        const parts = encodeRequest(current, number, saying)
        if (!(await wasTaken(parts, current))) break
        sent = number
        unheard.add(number, bytesOf(parts))
      }
      if (now() < turnEndsAt) continue
      await setImmediate() // a million wants take seconds to send
      turnEndsAt = now() + TURN_MS
    }
    writing = false
  }

  /**
   * Sends commands at the end of the turn. They come from as many clients as were read in it, each in a microtask of
   * its own, and one request per command would cost several times its content.
   */
  async function flushCommands() {
    if (writing || isFlushDue) return
    isFlushDue = true
    await setImmediate()
    isFlushDue = false
    flush()
  }

  /** @param {string} key @param {Partial<import('./wants.ts').Interest>} change */
  function want(key, change) {
    wants.want(key, change)
    flush()
  }

  function expire() {
    commands.expire()
    watchDeadlines()
  }

  /** Checks deadlines while there are any. Not with each command: that would cost as much as all those under way. */
  function watchDeadlines() {
    if (hasDeadlines === commands.size > 0) return
    hasDeadlines = commands.size > 0
    stopDeadlines()
    if (hasDeadlines) stopDeadlines = every(DEADLINE_CHECK_MS, expire)
  }

  return {
    start,
    stop,
    setAside,
    /** @param {string} key */
    watch: key => want(key, { watch: true }),
    /** @param {string} key */
    unwatch: key => want(key, { watch: false }),
    /** Sends a standing watch again: its payload changed. @param {string} key */
    renewWatch(key) {
      wants.renewWatch(key)
      flush()
    },
    /** Asks for one answer, which ends the want. @param {string} key */
    get: key => want(key, { get: true }),
    /** @param {string} key */
    cancelGet: key => want(key, { get: false }),
    /** Drops every interest in the key: another node owns it now. @param {string} key */
    drop: key => want(key, { watch: false, get: false }),
    /**
     * Tells the node something once; calls `done` when the node has heard it.
     *
     * @param {S['Notice']} notice
     * @param {() => void} done
     * @returns {() => void} takes it back
     */
    notify(notice, done) {
      const takeBack = notices.add(notice, done)
      flush()
      return takeBack
    },
    /**
     * Asks the node for an action. `done` is called once, with the result or the reason why there is none. The node
     * acts in the order given; a command that is repeated after a loss has the same id.
     *
     * @param {{ id: string, key: string, command: S['Command'], deadlineMs: number }} command
     * @param {(end: import('./commands.ts').CommandEnd<S['Result']>) => void} done
     */
    command({ id, key, command, deadlineMs }, done) {
      if (!codec.encodeCommand) throw new Error(`${codec.wire} has no commands`)
      commands.add({ id, key, encoded: codec.encodeCommand(command), deadlineAt: now() + deadlineMs, done })
      watchDeadlines()
      flushCommands()
    },
    /**
     * Removes and returns the commands of some keys: another node owns these now.
     *
     * @param {(key: string) => boolean} isOf
     */
    takeCommands(isOf) {
      const taken = commands.take(isOf)
      watchDeadlines()
      return taken
    },
    /** @param {import('./commands.ts').Pending<S['Result']>} command of a link that handed it over */
    takeOver(command) {
      commands.add(command)
      watchDeadlines()
      flush()
    },
    /** Figures of the present incarnation: wants sent under another one are void. */
    get id() {
      return id
    },
    get alive() {
      return alive
    },
    /** The node answers, and is not used. */
    get isSetAside() {
      return isSetAside
    },
  }
}

/**
 * @template {Service} S
 * @typedef {ReturnType<typeof createLink<S>>} Link
 */

/**
 * @typedef {Pick<import('pino').Logger, 'debug' | 'info' | 'warn' | 'error'>} Log
 */
