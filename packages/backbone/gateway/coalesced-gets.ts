// Single flight: callers that want the same thing at one time share one get, and each waits no longer than it said.
import type { Every, Payer } from '@keycast/service'
import { createDeadlineChecks } from './deadline-checks.ts'

interface Waiting<T> {
  deadlineAt: number
  payer: Payer | undefined
  done: (end: T) => void
}

interface Options<T> {
  get: (key: string) => void
  /** Nobody waits for the key any more. */
  cancelGet: (key: string) => void
  /** What a caller is told that waited in vain. */
  unanswered: () => T
  now: () => number
  every: Every
}

export type Coalesced<T> = ReturnType<typeof createCoalesced<T>>

export function createCoalesced<T>({ get, cancelGet, unanswered, now, every }: Options<T>) {
  const waiting = new Map<string, Waiting<T>[]>()
  const watchDeadlines = createDeadlineChecks({ every, isNeeded: () => waiting.size > 0, expire })

  function expire() {
    for (const [key, calls] of waiting) {
      const inTime = calls.filter(({ deadlineAt }) => now() < deadlineAt)
      if (inTime.length === calls.length) continue
      if (inTime.length > 0) waiting.set(key, inTime)
      else {
        waiting.delete(key)
        cancelGet(key)
      }
      for (const call of calls) if (!inTime.includes(call)) call.done(unanswered())
    }
  }

  function end(key: string, result: T) {
    const calls = waiting.get(key) ?? []
    waiting.delete(key)
    watchDeadlines()
    for (const { done } of calls) done(result)
  }

  return {
    /** Never rejects. */
    call(key: string, { deadlineMs, payer }: { deadlineMs: number; payer?: Payer }): Promise<T> {
      return new Promise(done => {
        const call = { deadlineAt: now() + deadlineMs, payer, done }
        const calls = waiting.get(key)
        if (calls) return void calls.push(call)
        waiting.set(key, [call])
        watchDeadlines()
        get(key)
      })
    },

    /** In whose turn the node answers: that of the first who waits. */
    payerOf: (key: string) => waiting.get(key)?.[0].payer,

    /** Gives the answer to all who wait for it. */
    end,

    stop() {
      for (const key of [...waiting.keys()]) end(key, unanswered())
    },
  }
}
