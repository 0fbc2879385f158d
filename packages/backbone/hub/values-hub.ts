// The fetcher's hub of values: the hub with the values' codec, and the events of backbone.ts.
import type { Hub } from '../backbone.ts'
import type { Want } from '../wire/envelope.ts'
import { type Values, valuesCodec } from '../wire/values-codec.ts'
import { createHub } from './hub.ts'
import { createMarks, MARK } from './marks.ts'

type PositionedWant = Want<Values>

const NOTHING = Object.freeze({ answers: [], more: false })

export function createValuesHub(options: Omit<Parameters<typeof createHub>[0], 'codec'>): Hub {
  const hub = createHub({ codec: valuesCodec, ...options })
  let lagsMs: () => Record<string, number> | undefined = () => undefined
  const marks = createMarks({ tell: hub.tell, lagsMs: () => lagsMs(), now: options.now })
  return {
    start(events) {
      if (events.lagsMs) lagsMs = events.lagsMs
      return hub.start({
        onWatch: (link, want) => events.onWatch(link, wantOf(want)),
        onUnwatch: events.onUnwatch,
        onGet: (link, want) => events.onGet(link, wantOf(want)),
        onCancelGet: events.onCancelGet,
        onNotice: (_, { keys }) => {
          for (const key of keys) events.onRefresh(key)
        },
        onCommand: (link, id, { type: _, ...question }) => {
          if (events.onAuthorize) events.onAuthorize(link, id, question)
          else hub.tellResult(link, id, { verdict: 'failed', message: 'this node asks no backend for decisions' })
        },
        onLinkLost(link) {
          marks.drop(link)
          return events.onLinkLost(link)
        },
        headsFor: marks.headsFor,
        answersFor(link, key) {
          if (key === MARK) {
            marks.pass(link)
            return NOTHING
          }
          const answer = events.answerFor(link, key)
          return answer ? { answers: [answer], more: false } : NOTHING
        },
      })
    },
    stop: hub.stop,
    tell: hub.tell,
    tellDecision: hub.tellResult,
    stats: hub.stats,
  }
}

function wantOf({ key, position, payload }: PositionedWant) {
  const { quiet, authorization, expiresAt } = payload ?? {}
  return {
    key,
    held: position,
    quiet,
    credentials: authorization === undefined ? undefined : { authorization, expiresAt },
  }
}
