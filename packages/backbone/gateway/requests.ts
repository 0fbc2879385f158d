// Everything that one link must send, as numbered requests. Wants, notices and commands share one count, so that the
// hub notices any loss.
import { createCommands } from './commands.ts'
import { createNotices } from './notices.ts'
import { createWants } from './wants.ts'

/** @typedef {import('../wire/codec.ts').Service} Service */

/**
 * @template {Service} S
 * @param {import('./wants.ts').WantEvents<S> & { now: () => number }} options
 */
export function createRequests({ position, payload, now }) {
  /** @type {ReturnType<typeof createWants<S>>} */
  const wants = createWants({ position, payload })
  /** @type {ReturnType<typeof createNotices<S['Notice']>>} */
  const notices = createNotices()
  /** @type {ReturnType<typeof createCommands<S['Result']>>} */
  const commands = createCommands({ now })
  const sources = [wants, notices, commands]
  let number = 0 // of requests made in this incarnation
  let incarnation = 0
  /** @type {import('../wire/envelope.ts').Saying<S> | undefined} */
  let probe

  const nextNumber = () => ++number
  const isAllSaid = () => !probe && sources.every(source => source.isAllSaid())

  /** The node forgot everything: all of it must be sent again, numbered from 1. */
  function startAnew() {
    incarnation++
    number = 0
    probe = undefined
    for (const source of sources) source.startAnew()
  }

  /** The next requests. Ends if {@link startAnew} came between two of them: the rest belongs to the link before. */
  function* nextRequests() {
    const current = incarnation
    if (probe) {
      const saying = probe
      probe = undefined
      yield { number: nextNumber(), saying }
      if (current !== incarnation) return
    }
    for (const source of sources) {
      for (const request of source.nextRequests(nextNumber)) {
        yield request
        if (current !== incarnation) return
      }
    }
  }

  return {
    wants,
    notices,
    commands,
    startAnew,
    nextRequests,
    /**
     * Makes a request that only tests whether requests are heard, and whether the answer can be read.
     *
     * @param {string | undefined} key the node must answer for it; `undefined` for a request without content
     */
    probe(key) {
      probe = key === undefined ? { type: 'unwatch', keys: [] } : { type: 'get', wants: [{ key, position: undefined }] }
    },
    isAllSaid,
    /** Whether nothing must be sent beyond the first `reached` requests. @param {number} reached */
    isAllHeard: reached => reached >= number && isAllSaid(),
  }
}
