// This gateway's part in the backends' streams of changes: it watches each at the fetcher node that holds it, gives values
// that it is handed to their owners, tells all nodes which keys changed, and then says so. docs/decisions, 36.
import {
  type Answer,
  type Backbone,
  type BackboneEvents,
  type Changed,
  changesKey,
  decodeChanged,
  type HandedOver,
  type Held,
} from '@keycast/backbone'
import { createOnceAMinute, type Namespaces, type World } from '@keycast/service'
import type { Log } from './sessions/session-log.ts'

export type Changes = ReturnType<typeof createChanges>

/** A node that is dead is no longer waited for within this time; one that is alive has confirmed long before. */
const DEADLINE_MS = 5_000

const AGAIN_MS = 1_000

interface Deps {
  namespaces: Namespaces
  backbone: Pick<Backbone, 'watch' | 'renewWatch' | 'refresh' | 'handOver'>
  log?: Log
  now: () => number
  after: World['after']
}

export function createChanges({ namespaces, backbone, now, after, log }: Deps) {
  const isLogDue = createOnceAMinute(now)
  const urls = namespaces.names.flatMap(name => namespaces.get(name)?.changes?.url ?? [])
  /** By the key under which each is watched. */
  const streams = new Map(urls.map(url => [changesKey(url), createStream(changesKey(url))]))
  let isStopped = false

  function createStream(key: string) {
    /** How far every node was told, as this gateway knows it. */
    let position: Held | undefined
    /** What it was handed last: a node that waited for too long hands the same out again. */
    let handed: Held | undefined

    /** @param changed at least one */
    async function take(changed: Changed[], next: Held) {
      const keys = changed.filter(each => typeof each === 'string')
      const values = changed.filter(each => typeof each !== 'string')
      // First: a fetch that begins later brings a newer value.
      await tell([...(await handOver(values)), ...keys], next)
    }

    /** @returns the keys whose values were not taken, perhaps: they are to be asked for */
    async function handOver(values: HandedOver[]): Promise<string[]> {
      const ends = await Promise.all(values.map(value => backbone.handOver(value, { deadlineMs: DEADLINE_MS })))
      return values.filter((_, index) => 'code' in ends[index]).map(({ key }) => key)
    }

    async function tell(keys: string[], next: Held) {
      try {
        await backbone.refresh(keys, { deadlineMs: DEADLINE_MS })
      } catch (error) {
        const why = (error as Error).message
        if (isLogDue(why)) log?.warn({ why }, 'not every fetcher node was told what changed: they are told again')
        after(AGAIN_MS, () => {
          if (!isStopped && handed === next) void tell(keys, next)
        })
        return
      }
      position = next
      backbone.renewWatch(key)
    }

    return {
      held: () => position,

      onAnswer(answer: Answer) {
        if (answer.type !== 'value') return
        const { version, order, body } = answer
        const changed = decodeChanged(body)
        const next = { version, order, ageMs: 0 }
        if (changed.length === 0) position = next
        else {
          handed = next
          void take(changed, next)
        }
      },
    }
  }

  return {
    /** @returns the same events, of values and of streams; a gateway without streams has them as they are */
    beside(values: Required<BackboneEvents>): Required<BackboneEvents> {
      if (streams.size === 0) return values
      return {
        ...values,
        held: (key, type) => (streams.get(key) ?? values).held(key, type),
        onAnswer: (answer, ...of) => (streams.get(answer.key) ?? values).onAnswer(answer, ...of),
      }
    },

    start() {
      for (const key of streams.keys()) backbone.watch(key)
    },

    stop() {
      isStopped = true
    },
  }
}
