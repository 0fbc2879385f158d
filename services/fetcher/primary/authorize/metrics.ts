// Metrics of the questions whether viewers may read. An origin is a backend that keycast.yaml names.
import type { Metrics } from '@keycast/service'
import type { Asks } from './asks.ts'

export function createAuthorizeMetrics({
  counter,
  gauge,
  histogram,
}: Pick<Metrics, 'counter' | 'gauge' | 'histogram'>) {
  const questions = counter({
    name: 'authorize_questions_total',
    help: 'Questions of gateways whether a viewer may read a key: met from memory; coalesced, with one under way; asked, of the backend.',
    labelNames: ['met'],
  })
  const answers = counter({
    name: 'authorize_answers_total',
    help: 'Answers of backends on whether a viewer may read: admitted (2xx), refused (401, 403, 404), failed.',
    labelNames: ['origin', 'verdict'],
  })
  const took = histogram({
    name: 'authorize_seconds',
    help: 'From such a question going to a worker to its answer.',
    buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  })
  for (const met of ['memory', 'coalesced', 'asked']) questions.inc({ met }, 0)

  return {
    questioned: (met: 'memory' | 'coalesced' | 'asked') => questions.inc({ met }),

    asked(origin: string, verdict: string, tookMs: number) {
      answers.inc({ origin, verdict })
      took.observe(tookMs / 1_000)
    },

    /** Exports levels, read at each scrape. */
    exportLevels(asks: Pick<Asks, 'stats' | 'sources'>) {
      for (const { origin } of asks.sources()) {
        for (const verdict of ['admitted', 'refused', 'failed']) answers.inc({ origin: origin.name, verdict }, 0)
      }
      gauge({
        name: 'authorize_waiting',
        help: 'Questions queued for a place in flight to their backend.',
        collect() {
          this.set(asks.stats().queued)
        },
      })
      gauge({
        name: 'authorize_in_flight',
        help: 'Questions leased to a worker.',
        collect() {
          this.set(asks.stats().inFlight)
        },
      })
      gauge({
        name: 'authorize_breaker_open',
        help: '1 while the circuit breaker of the questions about a namespace is open.',
        labelNames: ['origin', 'namespace'],
        collect() {
          for (const { origin, namespace, breaker } of asks.sources()) {
            this.set({ origin: origin.name, namespace }, Number(breaker.isOpen()))
          }
        },
      })
    },
  }
}
