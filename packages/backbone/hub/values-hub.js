// The fetcher's hub of values: the hub with the values' codec, and the events of backbone.js.
import { valuesCodec } from '../wire/values-codec.js'
import { createHub } from './hub.js'

/** @typedef {import('../wire/envelope.js').Want<import('../wire/values-codec.js').Values>} PositionedWant */

const NOTHING = Object.freeze({ answers: [], more: false })

/**
 * @param {Omit<Parameters<typeof createHub>[0], 'codec'>} options
 * @returns {import('../backbone.js').Hub}
 */
export function createValuesHub(options) {
  const hub = createHub({ codec: valuesCodec, ...options })
  return {
    start: events =>
      hub.start({
        onWatch: (link, want) => events.onWatch(link, heldOf(want)),
        onUnwatch: events.onUnwatch,
        onGet: (link, want) => events.onGet(link, heldOf(want)),
        onCancelGet: events.onCancelGet,
        onNotice: (_, { keys }) => {
          for (const key of keys) events.onRefresh(key)
        },
        onCommand: (link, id, { type: _, ...question }) => {
          if (events.onAuthorize) events.onAuthorize(link, id, question)
          else hub.tellResult(link, id, { verdict: 'failed', message: 'this node asks no backend for decisions' })
        },
        onLinkLost: events.onLinkLost,
        answersFor(link, key) {
          const answer = events.answerFor(link, key)
          return answer ? { answers: [answer], more: false } : NOTHING
        },
      }),
    stop: hub.stop,
    tell: hub.tell,
    tellDecision: hub.tellResult,
    stats: hub.stats,
  }
}

/** @param {PositionedWant} want @returns {import('../backbone.js').Want} */
const heldOf = ({ key, position, payload }) => ({ key, held: position, credentials: payload })
