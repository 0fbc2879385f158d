// Metrics of the questions whether messages may be published. An origin is a backend that keycast.yaml names.
import type { MetricMakers } from '@keycast/service'
import type { QuestionLevels } from '../questions/questions.ts'

/** @param origins the backends that are asked */
export function createRulingMetrics({ count, histogram }: MetricMakers, origins: Iterable<string>) {
  const took = histogram(
    'ruling_seconds',
    'From a question whether a message may be published going to a worker to its answer.',
    [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  )

  return {
    questioned: count(
      'ruling_questions_total',
      'Questions of gateways whether a message may be published: met from memory; coalesced, with one about the same message; asked, of the backend.',
      { met: ['memory', 'coalesced', 'asked'] },
    ),
    ruled: count(
      'rulings_total',
      'What backends say of messages: taken; changed, with other data; refused (403, 422); none, with no answer of use.',
      { origin: origins, ruling: ['taken', 'changed', 'refused', 'none'] },
    ),
    asked: (_origin: string, _verdict: string, tookMs: number) => took(tookMs),
  }
}

/** Exports levels, read at each scrape. */
export function exportRulingLevels({ read }: MetricMakers, { queued, inFlight, openBreakers }: QuestionLevels) {
  read('rulings_waiting', 'Messages queued for their backend to be asked about them.', queued)
  read('rulings_in_flight', 'Questions about messages leased to a worker.', inFlight)
  read(
    'rulings_breaker_open',
    '1 while the circuit breaker of the questions about messages of a namespace is open.',
    openBreakers,
  )
}
