// The keys for whose changes requests over HTTP wait. Each is subscribed to once, by a session that has no client: what
// sessions are told wakes the requests. One of those who wait pays for it as for a subscription, else a stranger could
// have the fetcher ask for any number of keys. The others cost nobody anything.
import type { EventEmitter } from 'node:events'
import type { ErrorMessage, Problem } from '@keycast/protocol'
import { createTurns, type World } from '@keycast/service'
import type { Rights } from '../../access/rights.ts'
import type { Encoding } from '../../encodings/encoding.ts'
import { createSession, type Session } from '../../sessions/session.ts'
import { FROM_NOTHING, type Start } from '../../topics/topics.ts'
import type { Paying } from '../../topics/values/payer-choice.ts'
import type { Transport } from '../../transport/transport.ts'

export type WaitedKeys = ReturnType<typeof createWaitedKeys>

export interface WaitedKey {
  readonly key: string
  /** The requests that wait, and those that look at the key's state. */
  readonly holders: Set<Paying>
  /** That of the holders which pays, or did when it left. */
  paying: Paying
  readonly session: Session
  waiting: Set<() => void>
  /** Why the fetcher ended the subscription. */
  ended: Problem | undefined
  /** Keeps the key from being left. */
  stay: () => void
}

interface Deps {
  readonly topics: {
    subscribe(session: Session, key: string, start: Start): 'value' | 'room' | Problem
    unsubscribe(session: Session, key: string): void
    asked(): number
  }
  readonly rateLimit: {
    allowances(): Pick<Session, 'requestAllowance' | 'keyAllowance'>
    keysWaitMs(session: Session): number
    chargeKeys(session: Session, keys: { watchedBefore: number; watchedAnew: number }): void
  }
  readonly payerChanged: (session: Session) => void
  readonly anonymous: Rights
  readonly world: Pick<World, 'now' | 'after' | 'turn'>
}

/** Caches take some time to ask again after an answer: meanwhile the key is kept fresh. */
const LINGER_MS = 5_000

const NOTHING = Buffer.alloc(0)

const TOO_MANY = 'this address opens too many keys that nobody waits for: ask for fewer'

/**
 * Writes nothing: that there is something to write wakes the requests. Its slot is its own, because frames are kept for
 * all sessions of an encoding.
 */
const encoding: Encoding = {
  subprotocol: '',
  slot: 4,
  addValue(_, pieces) {
    pieces.push(NOTHING)
    return 0
  },
  addAnswer: () => 0,
  delta: undefined,
  control: () => NOTHING,
  mustWait: undefined,
}

export function createWaitedKeys({ topics, rateLimit, payerChanged, anonymous, world }: Deps) {
  const byKey = new Map<string, WaitedKey>()
  let isDraining = false
  /** Called when the last key is left. */
  let drained = () => {}
  /** Thousands may wait for one change: what they are sent is made in turns. */
  const woken: Set<() => void>[] = []
  const wakes = createTurns({ now: world.now, turn: world.turn, step: wakeOne })

  function wakeOne() {
    const [waiting] = woken
    if (!waiting) return false
    for (const wake of waiting) {
      waiting.delete(wake)
      wake()
      return true
    }
    woken.shift()
    return true
  }

  function wakeAll(waited: WaitedKey) {
    if (waited.waiting.size === 0) return
    woken.push(waited.waiting)
    waited.waiting = new Set()
    wakes.start()
  }

  /**
   * The key is watched until all who opened it have closed it, and a little longer.
   *
   * @param by the request, which pays if nobody who is there does
   */
  function open(key: string, by: Paying): WaitedKey | Problem {
    const waited = byKey.get(key) ?? create(key, by)
    // The fetcher ends the subscription to a key that it refuses.
    const isSubscribed = waited.session.subscriptions.has(key)
    if (!isSubscribed || !waited.holders.has(waited.paying)) payFor(waited, by)
    const problem = isSubscribed ? undefined : subscribe(waited)
    if (problem) return problem
    if (!isSubscribed) waited.ended = undefined
    byKey.set(key, waited)
    waited.stay()
    waited.holders.add(by)
    return waited
  }

  /** The price is that of a subscription which makes the gateway watch the key. */
  function subscribe({ session, key }: WaitedKey): Problem | undefined {
    const retryAfterMs = rateLimit.keysWaitMs(session)
    if (retryAfterMs > 0) return { code: 'rate_limited', message: TOO_MANY, retryAfterMs }
    const askedBefore = topics.asked()
    const subscribed = topics.subscribe(session, key, FROM_NOTHING)
    rateLimit.chargeKeys(session, { watchedAnew: topics.asked() - askedBefore, watchedBefore: 0 })
    if (typeof subscribed === 'string') return undefined
    // It has as many as it may: some are left soon.
    if (subscribed.code === 'too_many_keys') return { code: 'rate_limited', message: TOO_MANY, retryAfterMs: LINGER_MS }
    return subscribed
  }

  /** The one who paid is gone: else the first at a page would pay for as long as anybody is there. */
  function payFor(waited: WaitedKey, by: Paying) {
    const { session } = waited
    const isOther = session.payer !== by.payer
    if (session.account) session.account.keys -= session.subscriptions.size
    if (by.account) by.account.keys += session.subscriptions.size
    session.account = by.account
    session.payer = by.payer
    waited.paying = by
    if (isOther) payerChanged(session)
  }

  function create(key: string, by: Paying): WaitedKey {
    const peer = { address: '', isNamed: false }
    const start = { id: '', ...rateLimit.allowances(), peer, rights: anonymous }
    const session = createSession(transportOf(key), encoding, start)
    return { key, holders: new Set(), paying: by, session, waiting: new Set(), ended: undefined, stay() {} }
  }

  function close(waited: WaitedKey, by: Paying) {
    waited.holders.delete(by)
    if (waited.holders.size > 0) return
    if (isDraining) leave(waited)
    else waited.stay = world.after(LINGER_MS, () => leave(waited))
  }

  function leave(waited: WaitedKey) {
    waited.stay()
    byKey.delete(waited.key)
    topics.unsubscribe(waited.session, waited.key)
    if (byKey.size === 0) drained()
  }

  const transportOf = (key: string): Transport => ({
    subprotocol: '',
    isCompressed: false,
    serve() {},
    write(pieces) {
      const waited = byKey.get(key)
      if (!waited) return
      // Values and problems are frames. Messages in words are errors: of the end of the subscription, or of a late fetcher.
      for (const piece of pieces) {
        if (typeof piece !== 'string') continue
        const { subscribed, code, message } = JSON.parse(piece) as ErrorMessage
        if (!subscribed) waited.ended = { code, message }
      }
      wakeAll(waited)
    },
    isOpen: () => true,
    isStalled: () => false,
    takenBytes: () => 0,
    copiedBytes: () => 0,
    answersPings: true,
    pingFrame: NOTHING,
    pongFrame: () => NOTHING,
    pause() {},
    readOn() {},
    close() {},
    terminate() {},
  })

  /**
   * Resolves when something about the key has changed, when the time is over, when the gateway drains, and when the
   * request's connection closes.
   */
  function next(waited: WaitedKey, timeMs: number, connection: EventEmitter): Promise<void> {
    return new Promise(resolve => {
      const { waiting } = waited
      const cancel = world.after(timeMs, done)
      function done() {
        cancel()
        waiting.delete(done)
        connection.off('close', done)
        resolve()
      }
      connection.once('close', done)
      waiting.add(done)
    })
  }

  return {
    open,
    close,
    next,
    isDraining: () => isDraining,

    /** Each subscribes to one key, for all who wait. */
    sessions: () => Array.from(byKey.values(), ({ session }) => session),

    /** All that wait are answered now. Resolves when they are: what follows cuts the connections. */
    drain(): Promise<void> {
      isDraining = true
      return new Promise(resolve => {
        drained = resolve
        if (byKey.size === 0) resolve()
        for (const waited of [...byKey.values()]) {
          if (waited.holders.size > 0) wakeAll(waited)
          else leave(waited)
        }
      })
    },

    stats: () => {
      let waits = 0
      for (const { waiting } of byKey.values()) waits += waiting.size
      return { waits }
    },
  }
}
