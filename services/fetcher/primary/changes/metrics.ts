// Metrics of the backends' streams of changes, of which each is held by one node.
import type { MetricMakers } from '@keycast/service'

export type ChangesMetrics = ReturnType<typeof createChangesMetrics>

/** @param origins the backends that have one */
export function createChangesMetrics({ count }: MetricMakers, origins: Iterable<string>) {
  return {
    event: count(
      'changes_events_total',
      "Events of backends' streams of changes: taken; refused, for they name no key of the namespaces that have the stream, or carry a value that cannot be taken.",
      { origin: origins, result: ['taken', 'refused'] },
    ),
    opened: count(
      'changes_opened_total',
      "Backends' streams of changes that were opened: resumed, where the one before broke off; anew, so that all watched keys were asked for.",
      { origin: origins, how: ['resumed', 'anew'] },
    ),
  }
}

interface Stream {
  origin: string
  downMs: () => number | undefined
}

/** Exports levels, read at each scrape. */
export function exportChangesLevels({ read }: MetricMakers, streams: Stream[]) {
  read(
    'changes_down_seconds',
    'For how long the stream of changes that this node holds has been down: then keys are asked each refresh. 0 while it is up.',
    () =>
      streams.flatMap(({ origin, downMs }) => {
        const ms = downMs()
        return ms === undefined ? [] : { labels: { origin }, value: ms / 1_000 }
      }),
  )
}
