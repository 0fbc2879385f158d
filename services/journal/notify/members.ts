// Tells backends who is in their rooms: the latest state of each room that changed, and now and then of each that has
// members, so that what a journal that is gone had told does not stand for ever.
import { namespaceOf } from '@keycast/protocol'
import { createOnceAMinute, createTurns, type Notify, type Log as ServiceLog, type World } from '@keycast/service'
import { createPace, type Pace } from './pace.ts'
import type { Outcome, Post } from './post.ts'

/** The members of a room as they are told; a list only where the room's are named, and not too many for one. */
export interface MembersState {
  epoch: string
  rev: number
  count: number
  members?: object[]
}

/** Rooms of one call, and characters of what is said of them, roughly. */
const CALL_ROOMS_MAX = 100
const CALL_CHARACTERS_MAX = 256 * 1_024

/** As many as there can be with members, and as many again that have none any more. */
const ROOMS_MAX = 400_000

/** A backend forgets a state that was not told again for three times as long (docs/http-api.md). */
export const AGAIN_MS = 5 * 60_000

const RETRY_MS = 250

interface Lane {
  pace: Pace
  /** By room, its latest state. */
  due: Map<string, () => MembersState>
  isBusy: boolean
}

interface Deps extends Pick<World, 'now' | 'random' | 'every' | 'turn'> {
  /** Rooms that have members now. */
  occupied: () => Iterable<[room: string, state: () => MembersState]>
  /** `undefined` where the room's backend is not told its members. */
  rulesOf: (room: string) => Notify | undefined
  post: Post
  counts: { called: (outcome: Outcome['kind']) => void }
  report: Pick<ServiceLog, 'warn'>
}

export function createMembersTeller({ occupied, rulesOf, post, counts, report, now, random, every, turn }: Deps) {
  const lanes = new Map<string, Lane>()
  const isLogDue = createOnceAMinute(now)
  let walk: Iterator<[string, () => MembersState]> | undefined
  const turns = createTurns({ now, turn, step })
  let stops: (() => void)[] = []
  let isStopped = false

  function laneOf(room: string): Lane {
    const name = namespaceOf(room)
    const lane = lanes.get(name) ?? { pace: createPace({ now, random }), due: new Map(), isBusy: false }
    lanes.set(name, lane)
    return lane
  }

  function changed(room: string, state: () => MembersState) {
    if (!rulesOf(room)) return
    const lane = laneOf(room)
    lane.due.set(room, state)
    if (lane.due.size > ROOMS_MAX) lane.due.delete(lane.due.keys().next().value as string)
    pump(lane)
  }

  function pump(lane: Lane) {
    if (!lane.isBusy && !isStopped && lane.due.size > 0 && lane.pace.admits()) void tell(lane)
  }

  /** @returns never rejects */
  async function tell(lane: Lane) {
    lane.isBusy = true
    lane.pace.start()
    // The next turn has more rooms for the same call.
    await new Promise<void>(turn)
    const told = new Map<string, () => MembersState>()
    const texts: string[] = []
    let characters = 0
    for (const [room, state] of lane.due) {
      if (told.size === CALL_ROOMS_MAX || characters > CALL_CHARACTERS_MAX) break
      const { epoch, rev, count, members } = state()
      const text = JSON.stringify({ key: room, epoch, rev, count, members })
      characters += text.length
      texts.push(text)
      told.set(room, state)
      lane.due.delete(room)
    }
    const [first] = told.keys()
    const rules = rulesOf(first)
    const outcome: Outcome = rules ? await post(rules, `{"members":[${texts.join()}]}`) : { kind: 'taken' }
    if (rules) counts.called(outcome.kind)
    if (outcome.kind !== 'taken' && isLogDue(outcome.why)) {
      report.warn({ rooms: told.size, why: outcome.why }, 'a backend was not told the members of rooms')
    }
    if (outcome.kind === 'failed') for (const [room, state] of told) if (!lane.due.has(room)) lane.due.set(room, state)
    lane.pace.end(outcome.kind !== 'failed', outcome.kind === 'failed' ? outcome.retryAfterMs : 0)
    lane.isBusy = false
    // After a failure the next look goes on: the backend may fail at once.
    if (outcome.kind !== 'failed') pump(lane)
  }

  /** @returns whether there are more rooms to tell again */
  function step(): boolean {
    const next = walk?.next()
    if (!next || next.done) {
      walk = undefined
      return false
    }
    const [room, state] = next.value
    changed(room, state)
    return true
  }

  return {
    changed,

    start() {
      stops = [
        every(RETRY_MS, () => {
          for (const lane of lanes.values()) pump(lane)
        }),
        every(AGAIN_MS, () => {
          walk ??= occupied()[Symbol.iterator]()
          turns.start()
        }),
      ]
    },

    stop() {
      isStopped = true
      for (const stop of stops) stop()
    },
  }
}
