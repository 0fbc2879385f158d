// Everything that one link must send, as numbered requests. Wants, notices and commands share one count, so that the
// hub notices any loss.
import type { Service } from '../wire/codec.ts'
import type { Saying } from '../wire/envelope.ts'
import { createCommands } from './commands.ts'
import { createNotices } from './notices.ts'
import { createWants, type WantOptions } from './wants.ts'

export function createRequests<S extends Service>({ now, ...options }: WantOptions<S> & { now: () => number }) {
  const wants: ReturnType<typeof createWants<S>> = createWants(options)
  const notices: ReturnType<typeof createNotices<S['Notice']>> = createNotices()
  const commands: ReturnType<typeof createCommands<S['Result']>> = createCommands({ now })
  const sources = [wants, notices, commands]
  let number = 0 // of requests made in this incarnation
  let incarnation = 0
  let probe: Saying<S> | undefined

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
      if (source.isAllSaid()) continue
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
     * @param key the node must answer for it; `undefined` for a request without content
     */
    probe(key: string | undefined) {
      probe = key === undefined ? { type: 'unwatch', keys: [] } : { type: 'get', wants: [{ key, position: undefined }] }
    },
    isAllSaid,
    /** Whether nothing must be sent beyond the first `reached` requests. */
    isAllHeard: (reached: number) => reached >= number && isAllSaid(),
  }
}

export type Requests<S extends Service> = ReturnType<typeof createRequests<S>>
