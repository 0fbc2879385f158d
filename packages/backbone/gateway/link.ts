// A gateway's link to one node. It tells the node the gateway's wants, notices any loss of wants or answers, and then
// sends them all again under a new id. It knows neither sockets, which come from `dial`, nor the content, which the
// codec knows.
import {
  BEAT_MS,
  type Containment,
  createAwakeClock,
  createOnceAMinute,
  noContainment,
  type Payer,
  SILENT_MS,
  type World,
} from '@keycast/service'
import type { Logger } from 'pino'
import { bytesOf, type Codec, type Service, WireError } from '../wire/codec.ts'
import { type Answers, decodeFromHub, encodeMessage, type FromHub, type HubBeat } from '../wire/envelope.ts'
import type { CommandEnd, Pending } from './commands.ts'
import { createDeadlineChecks } from './deadline-checks.ts'
import { createProgress } from './progress.ts'
import { createRequests, type Requests } from './requests.ts'
import { createSender } from './sender.ts'
import type { Want, WantEvents } from './wants.ts'

/**
 * A pair of sockets to the node. `request` resolves to true when the socket took the message, to false when it had no
 * room for it in time, and rejects when the pair was closed; `beat` may drop what cannot be sent now.
 */
interface Dialled {
  request: (parts: Buffer[]) => Promise<boolean>
  beat: (part: Buffer) => void
  close: () => void
}

/** Calls `message` for each message from the node. */
export type Dial = (message: (parts: Buffer[]) => void) => Dialled

export interface LinkEvents<S extends Service> extends WantEvents<S> {
  /** `isGot`: it answers and ends the key's get. `link`: this one, as below. `isBefore`: a get was said since. */
  onAnswer: (answer: S['Answer'], isGot: boolean, link: Link<S>, isBefore: boolean) => void
  /** The node's progress when it sent a beat: comes after all answers before it. */
  onHeads?: (heads: S['Heads'], link: Link<S>) => void
  /** Whether the node is used that answers from this log, which has come so far. */
  admits?: (log: string | undefined, logAt: number | undefined) => boolean
  /** The node beat. `isCutOff`: it cannot reach its log. */
  onReach?: (isCutOff: boolean) => void
  /** Its log has come so far. */
  onLogAt?: (logAt: number) => void
  /** What the node must be told: of its log, which has gone back. */
  logBefore?: () => { log: string; logAt: number } | undefined
  onAlive: () => void
  /** The node knew nothing of the link, and is told everything again: it may have been started anew before it was missed. */
  onForgotten?: () => void
  /**
   * The node fell silent, said goodbye, never spoke or cannot be understood; the link keeps trying. Again each time its
   * silence is over.
   */
  onDead: (wasAlive: boolean) => void
}

/** A command to the owner of a key. `payer`: whom the node charges for it. `isOnce`: it is not repeated after a loss. */
export interface Asked<S extends Service> {
  key: string
  command: S['Command']
  payer?: Payer
  deadlineMs: number
  isOnce?: boolean
}

/**
 * Bytes taken after which a gateway reports them without waiting for its beat. A node that shares its credit among a
 * hundred gateways gives each some 600 KiB.
 */
const TAKEN_REPORT_BYTES = 2 ** 18

interface Options<S extends Service> extends World {
  codec: Codec<S>
  /** Its name, for the log. */
  node: string
  /** All that the gateway wants, by key; this link changes those of its own. */
  wants?: Map<string, Want>
  dial: Dial
  events: LinkEvents<S>
  containment?: Containment
  log: Log
}

export function createLink<S extends Service>({
  codec,
  node,
  wants: table,
  dial,
  events,
  containment = noContainment,
  now,
  every,
  after,
  turn,
  randomBytes,
  log,
}: Options<S>) {
  const requests: Requests<S> = createRequests({ ...events, table, now })
  const { wants, notices, commands } = requests
  const awake = createAwakeClock({ periodMs: BEAT_MS, every, now })
  const progress = createProgress({ now: awake.now })
  const isLogDue = createOnceAMinute(now)

  let sockets: Dialled | undefined
  let id = ''
  let reached = 0 // requests the node has heard, as of its last beat
  let answered = 0 // messages of answers received under this id
  let taken = 0 // their bytes
  let takenReported = 0
  let introduced = false // a beat came back under this id: the hub knows the link
  let alive = false
  let isForgotten = false // the node said that it does not know what it was told
  let isSetAside = false // the node's last beat had another wire version, or another log than the one in use
  let probedId = '' // the id under which the node was last probed
  let lastHeardAt = 0 // by `awake`
  let dialledAt = Number.NEGATIVE_INFINITY
  const sender = createSender({ requests, idNow: () => (introduced ? id : undefined), wasTaken, now, after, turn })
  const watchDeadlines = createDeadlineChecks({ every, isNeeded: () => commands.size > 0, expire: commands.expire })

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
    wants.stop()
    watchDeadlines()
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
    reached = 0
    answered = 0
    taken = 0
    takenReported = 0
    requests.startAnew()
    sender.startAnew()
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
      encodeMessage({ type: 'beat', link: id, wire: codec.wire, number: sender.sent, taken, ...events.logBefore?.() }),
    )
  }

  function onBeatDue() {
    if (alive && progress.isUnheard()) return onRequestsUnheard()
    if (awake.now() - lastHeardAt < SILENT_MS) return sockets ? beat() : connect()
    // Opens fresh sockets even if the node was dead before: a connection whose packets are swallowed never heals by
    // itself, and TCP takes minutes to give it up.
    if (alive) log.warn(about(), 'the node fell silent')
    die()
  }

  function onRequestsUnheard() {
    log.warn(about(), 'the node beats and hears no requests')
    progress.demand()
    die()
  }

  function onRequestLost() {
    if (alive && progress.onRequestLost()) onRequestsUnheard()
    else redial()
  }

  function onAnswersLost() {
    const isOfNoUse = progress.onAnswersLost()
    if (!alive || !isOfNoUse) return redial()
    log.warn(about(), 'the node beats and none of its answers can be read')
    progress.demand(wants.sample())
    die()
  }

  function die() {
    const wasAlive = alive
    alive = false
    isSetAside = false
    lastHeardAt = awake.now()
    redial()
    events.onDead(wasAlive)
  }

  function onParts(parts: Buffer[]) {
    let message
    try {
      message = decodeFromHub(parts, codec)
    } catch (error) {
      if (error instanceof WireError) {
        log.warn({ ...about(), error: error.message }, 'a damaged message came from the node: starting the link anew')
      } else containment.caught('link', error)
      return onAnswersLost()
    }
    if (message.link === id) apply(message, parts)
  }

  // An answer is for all who want its key, and no loss of the link takes it back.
  const apply = containment.guard('link', take, redial, { isForAll: true })

  /** @param parts it came in */
  function take(message: FromHub<S>, parts: Buffer[]) {
    lastHeardAt = awake.now()
    switch (message.type) {
      case 'resync':
        log.info(about(), 'the node missed something: saying everything again')
        isForgotten = true
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

  function onIncompatible(wire: string | undefined) {
    if (isLogDue('wire')) {
      log.error(
        { ...about(), theirs: wire ?? 'none', ours: codec.wire },
        'the node speaks another wire version and is not used: run the same release of Keycast on both ends',
      )
    }
    setAside()
  }

  /** The node is not used. The sockets stay: another one may take its place behind them. */
  function setAside() {
    if (introduced) redial() // one that could be used went, and its place was taken
    if (isSetAside) return
    const wasAlive = alive
    isSetAside = true
    alive = false
    events.onDead(wasAlive)
  }

  function onBeat(beat: HubBeat<S>) {
    if (events.admits?.(beat.log, beat.logAt) === false) return setAside()
    if (beat.answered > answered) return lost(beat.answered)
    progress.onBeat({ hasHeardMore: beat.reached > reached, isAllHeard: requests.isAllHeard(beat.reached) })
    reached = beat.reached
    notices.confirm(reached)
    sender.confirm(reached)
    introduced = true
    isSetAside = false
    events.onReach?.(beat.isCutOff === true)
    if (progress.proof) {
      if (probedId !== id && requests.isAllSaid()) {
        probedId = id
        requests.probe(progress.proof.key)
      }
    } else if (!alive) {
      alive = true
      events.onAlive()
    } else if (isForgotten) events.onForgotten?.()
    isForgotten = false
    if (beat.heads !== undefined) events.onHeads?.(beat.heads, self)
    sender.send()
  }

  function onAnswers(message: Answers<S>, bytes: number) {
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
        if (what !== 'earlier') events.onAnswer(answer, what === 'got', self, what === 'before')
      }
    }
    if (message.logAt !== undefined) events.onLogAt?.(message.logAt)
    for (const each of message.results) {
      commands.end(each.id, each.isRefused ? { type: 'refused' } : { type: 'result', result: each.result })
    }
    if (message.results.length > 0) sender.onResults()
  }

  function onUnknownAnswer() {
    if (isLogDue('answer'))
      log.warn(
        { ...about(), ours: codec.wire },
        'an answer of an unknown kind was skipped: the node is of a newer release',
      )
  }

  function lost(answeredByHub: number) {
    log.warn(
      { ...about(), received: answered, sent: answeredByHub },
      'answers were lost on the way: starting the link anew',
    )
    onAnswersLost()
  }

  /**
   * Gives a request to the socket.
   *
   * @param current the id that it is sent under
   * @returns whether it was taken while that was the link's id; if not, all is sent anew
   */
  async function wasTaken(parts: Buffer[], current: string): Promise<boolean> {
    const dialled = sockets as Dialled
    try {
      while (current === id && !(await dialled.request(parts))) {
        if (current !== id) return false
        // A node that hears some requests is busy: a repetition would only give it the same requests twice.
        if (!alive) redial()
        else if (progress.onNoRoom()) onRequestsUnheard()
      }
    } catch (error) {
      if (current !== id) return false // the pair was closed while it waited
      log.debug({ ...about(), error: (error as Error).message }, 'a request could not be sent: starting the link anew')
      redial()
    }
    return current === id
  }

  function want(key: string, change: { watch?: boolean; get?: boolean }) {
    wants.want(key, change)
    sender.send()
  }

  /** What the log says of it: nodes know a gateway by the link alone. */
  const about = () => ({ node, link: id })

  const self = {
    about,
    start,
    stop,
    setAside,
    watch: (key: string) => want(key, { watch: true }),
    unwatch: (key: string) => want(key, { watch: false }),
    /** Sends a standing watch again: its payload or payer changed. */
    renewWatch(key: string) {
      wants.renewWatch(key)
      sender.send()
    },
    /** Asks for one answer, which ends the want. */
    get: (key: string) => want(key, { get: true }),
    cancelGet: (key: string) => want(key, { get: false }),
    /** Drops every interest in the key: another node owns it now. */
    drop(want: Want) {
      wants.drop(want)
      sender.send()
    },
    /**
     * Tells the node something once; calls `done` when the node has heard it.
     *
     * @returns takes it back
     */
    notify(notice: S['Notice'], done: () => void): () => void {
      const takeBack = notices.add(notice, done)
      sender.send()
      return takeBack
    },
    /**
     * Asks the node for an action. `done` is called once, with the result or the reason why there is none. The node
     * acts in the order given; a command that is repeated after a loss has the same id.
     */
    command(
      id: string,
      { key, command, payer, deadlineMs, isOnce }: Asked<S>,
      done: (end: CommandEnd<S['Result']>) => void,
    ) {
      if (!codec.encodeCommand) throw new Error(`${codec.wire} has no commands`)
      const encoded = codec.encodeCommand(command)
      const deadlineAt = now() + deadlineMs
      commands.add({ id, key, encoded, payer, deadlineAt, isOnce, wasSaid: false, isRepeated: false, done })
      watchDeadlines()
      sender.sendCommands()
    },
    /** Removes and returns the commands of some keys: another node owns these now. */
    takeCommands(isOf: (key: string) => boolean) {
      const taken = commands.take(isOf)
      watchDeadlines()
      return taken
    },
    /** @param command of a link that handed it over */
    takeOver(command: Pending<S['Result']>) {
      commands.add(command)
      watchDeadlines()
      sender.send()
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
  return self
}

export type Link<S extends Service> = ReturnType<typeof createLink<S>>

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
