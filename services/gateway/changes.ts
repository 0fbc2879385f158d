// This gateway's part in the backends' streams of changes: it watches each at the fetcher node that holds it, tells all
// nodes of what it is handed, and then says so. docs/decisions, 36.
import { type Answer, type Backbone, type BackboneEvents, changesKey, type Held } from '@keycast/backbone'
import { createOnceAMinute, type Namespaces, type World } from '@keycast/service'
import type { Log } from './sessions/session-log.ts'

export type Changes = ReturnType<typeof createChanges>

/** A node that is dead is no longer waited for within this time; one that is alive has confirmed long before. */
const DEADLINE_MS = 5_000

const AGAIN_MS = 1_000

interface Deps {
  namespaces: Namespaces
  backbone: Pick<Backbone, 'watch' | 'renewWatch' | 'refresh'>
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
        const keys: string[] = JSON.parse(body.toString())
        const next = { version, order, ageMs: 0 }
        if (keys.length === 0) position = next
        else {
          handed = next
          void tell(keys, next)
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
        held: key => (streams.get(key) ?? values).held(key),
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
