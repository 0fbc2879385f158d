// Metrics of the questions whether viewers may read. An origin is a backend that keycast.yaml names.
import type { MetricMakers } from '@keycast/service'
import type { QuestionLevels } from '../questions/questions.ts'

/** @param origins the backends that are asked */
export function createAuthorizeMetrics({ count, histogram }: MetricMakers, origins: Iterable<string>) {
  const answered = count(
    'authorize_answers_total',
    'Answers of backends on whether a viewer may read: admitted (2xx), refused (401, 403, 404), failed.',
    { origin: origins, verdict: ['admitted', 'refused', 'failed'] },
  )
  const took = histogram(
    'authorize_seconds',
    'From such a question going to a worker to its answer.',
    [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  )

  return {
    questioned: count(
      'authorize_questions_total',
      'Questions of gateways whether a viewer may read a key: met from memory; coalesced, with one under way; asked, of the backend.',
      { met: ['memory', 'coalesced', 'asked'] },
    ),

    asked(origin: string, verdict: string, tookMs: number) {
      answered(origin, verdict)
      took(tookMs)
    },
  }
}

/** Exports levels, read at each scrape. */
export function exportAuthorizeLevels({ read }: MetricMakers, { queued, inFlight, openBreakers }: QuestionLevels) {
  read('authorize_waiting', 'Questions queued for a place in flight to their backend.', queued)
  read('authorize_in_flight', 'Questions leased to a worker.', inFlight)
  read(
    'authorize_breaker_open',
    '1 while the circuit breaker of the questions about a namespace is open.',
    openBreakers,
  )
}
