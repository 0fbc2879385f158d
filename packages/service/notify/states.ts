// Tells backends states: the latest of each key that changed, and now and then each that stands, so that what a process
// that is gone had told does not stand for ever.
import { namespaceOf } from '@keycast/protocol'
import { createRecent } from '../collections/recent.ts'
import { createTurns, workTurn } from '../collections/turns.ts'
import type { Log } from '../log.ts'
import type { Notify } from '../namespaces/notify-schema.ts'
import { createOnceAMinute } from '../once-a-minute.ts'
import type { World } from '../world.ts'
import { createPace, type Pace } from './pace.ts'
import type { Outcome, Post } from './post.ts'

/** A key's state at the moment at which it is told; `undefined` where there is nothing to be said of it any more. */
type StateNow = () => object | undefined

/** Keys of one call, and characters of what is said of them, roughly. */
const CALL_KEYS_MAX = 100
const CALL_CHARACTERS_MAX = 256 * 1_024

/** As many as there can be that stand, and as many again that have ended. */
const KEYS_MAX = 400_000

/** A backend forgets a state that was not told again for three times as long (docs/http-api.md). */
export const AGAIN_MS = 5 * 60_000

const RETRY_MS = 250

interface Lane {
  pace: Pace
  /** By key, its latest state. A key that changes keeps its place, or one that changes all the time would never be told. */
  due: ReturnType<typeof createRecent<string, { state: StateNow }>>
  /** A call is under way, or is to be tried again soon. */
  isBusy: boolean
}

interface Deps extends Pick<World, 'now' | 'random' | 'every' | 'after' | 'turn'> {
  /** What is told: the field of a call. */
  what: string
  /** A call waits so long for more keys, or for another state of the same; 0: for those of the turn. */
  lingerMs: number
  /** The keys whose states are told again; `undefined` for one that is passed over. */
  standing: () => Iterable<[key: string, state: StateNow] | undefined>
  /** `undefined` where the key's backend is not told. */
  rulesOf: (key: string) => Notify | undefined
  post: Post
  counts: { called: (outcome: Outcome['kind']) => void }
  report: Pick<Log, 'warn'>
}

export function createStatesTeller({ what, lingerMs, standing, rulesOf, post, counts, report, ...world }: Deps) {
  const { now, random, every, after, turn } = world
  const lanes = new Map<string, Lane>()
  const isLogDue = createOnceAMinute(now)
  let walk: Iterator<[string, StateNow] | undefined> | undefined
  const turns = createTurns({ now, turn, step })
  let stopWalks = () => {}
  let isStopped = false

  function laneOf(key: string): Lane {
    const name = namespaceOf(key)
    const lane = lanes.get(name) ?? { pace: createPace({ now, random }), due: createRecent(KEYS_MAX), isBusy: false }
    lanes.set(name, lane)
    return lane
  }

  function changed(key: string, state: StateNow) {
    if (!rulesOf(key)) return
    const lane = laneOf(key)
    const known = lane.due.get(key)
    if (known) known.state = state
    else lane.due.set(key, { state })
    pump(lane)
  }

  function pump(lane: Lane) {
    if (lane.isBusy || isStopped || lane.due.size === 0) return
    if (lane.pace.admits()) void tell(lane)
    else retry(lane)
  }

  function retry(lane: Lane) {
    lane.isBusy = true
    after(RETRY_MS, () => {
      lane.isBusy = false
      pump(lane)
    })
  }

  /** The next moments have more keys for the same call. */
  const linger = (lane: Lane) =>
    new Promise<void>(resolve => {
      if (lingerMs > 0 && lane.due.size < CALL_KEYS_MAX) after(lingerMs, resolve)
      else turn(resolve)
    })

  /** @returns never rejects */
  async function tell(lane: Lane) {
    lane.isBusy = true
    lane.pace.start()
    await linger(lane)
    const told = new Map<string, { state: StateNow; text: string }>()
    let characters = 0
    const addNext = () => {
      const next = lane.due.takeOldest()
      if (!next) return false
      const { key, value } = next
      const said = value.state()
      told.delete(key) // it changed since
      if (said) {
        const text = JSON.stringify({ key, ...said })
        characters += text.length
        told.set(key, { ...value, text })
      }
      return told.size < CALL_KEYS_MAX && characters <= CALL_CHARACTERS_MAX
    }
    // While a backend was down 100,000 keys may have come and gone, of which there is nothing to say.
    while (workTurn(now, addNext)) await new Promise<void>(turn)
    const [first] = told.keys()
    const rules = first === undefined || isStopped ? undefined : rulesOf(first)
    const texts = Array.from(told.values(), ({ text }) => text)
    const outcome: Outcome = rules ? await post(rules, `{"${what}":[${texts}]}`) : { kind: 'taken' }
    if (rules) counts.called(outcome.kind)
    if (outcome.kind !== 'taken' && isLogDue(outcome.why)) {
      report.warn({ keys: told.size, why: outcome.why }, `a backend was not told of ${what}`)
    }
    if (outcome.kind === 'failed')
      for (const [key, { state }] of told) if (!lane.due.has(key)) lane.due.set(key, { state })
    // Where nothing was said, nothing is known of the backend.
    lane.pace.end(rules && outcome.kind !== 'failed', outcome.kind === 'failed' ? outcome.retryAfterMs : 0)
    lane.isBusy = false
    // Not at once: the backend may fail as soon as it is called.
    if (outcome.kind === 'failed') retry(lane)
    else pump(lane)
  }

  /** @returns whether there are more keys to tell again */
  function step(): boolean {
    const next = walk?.next()
    if (!next || next.done) {
      walk = undefined
      return false
    }
    if (next.value) changed(...next.value)
    return true
  }

  return {
    changed,

    start() {
      stopWalks = every(AGAIN_MS, () => {
        walk ??= standing()[Symbol.iterator]()
        turns.start()
      })
    },

    /** Begins no more calls. */
    stop() {
      isStopped = true
      stopWalks()
    },
  }
}
