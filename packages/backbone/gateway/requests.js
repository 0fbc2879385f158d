// Everything one link has to say, as numbered requests: wants, notices and commands share one count, so that the hub
// notices any loss.
import { createCommands } from './commands.js'
import { createNotices } from './notices.js'
import { createWants } from './wants.js'

/** @typedef {import('../wire/codec.js').Service} Service */

/**
 * @template {Service} S
 * @param {import('./wants.js').WantEvents<S> & { now: () => number }} options
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
  let isProbeDue = false

  const nextNumber = () => ++number
  const isAllSaid = () => !isProbeDue && sources.every(source => source.isAllSaid())

  /** The node knows nothing of what it was told: all of it is to be said again, numbered from 1. */
  function startAnew() {
    incarnation++
    number = 0
    isProbeDue = false
    for (const source of sources) source.startAnew()
  }

  /**
   * The next requests. Ends where {@link startAnew} came between two of them: the rest belongs to the link of before.
   */
  function* nextRequests() {
    const current = incarnation
    if (isProbeDue) {
      isProbeDue = false
      yield { number: nextNumber(), saying: { type: /** @type {const} */ ('unwatch'), keys: [] } }
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
    /** Has a request made that says nothing, to learn whether requests are heard. */
    probe() {
      isProbeDue = true
    },
    isAllSaid,
    /** Whether there is nothing to say but what the first `reached` requests said. @param {number} reached */
    isAllHeard: reached => reached >= number && isAllSaid(),
  }
}
