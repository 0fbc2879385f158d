// Values that backends hand over, without a journal: for unit tests of gateways. Answered in a later microtask.
import type { HandedOver, Taken } from '../backbone.ts'
import type { PushedBackbone, PushedEvents, PushedState } from '../gateway/rooms/pushed.ts'

export function createMemoryPushed({ isAway }: { isAway: () => boolean }) {
  const kept = new Map<string, { content: HandedOver['content']; rank: number | undefined; order: number }>()
  const gateways = new Set<{ events: PushedEvents; watched: Set<string> }>()

  function stateOf(key: string): PushedState {
    if (isAway()) return { type: 'failed', key, code: 'journal_unavailable', message: 'away', retryAfterMs: 1_000 }
    const { content, rank, order = 0 } = kept.get(key) ?? {}
    if (content) return { type: 'value', key, content, rank, order }
    return { type: 'failed', key, code: 'not_found', message: 'no value', retryAfterMs: undefined }
  }

  function handOver({ key, content, rank }: HandedOver): Taken {
    if (isAway()) return { code: 'journal_unavailable', retryAfterMs: 1_000 }
    const before = kept.get(key)
    if (rank !== undefined && before?.rank !== undefined && rank < before.rank) {
      return { outcome: 'older', rank: before.rank }
    }
    kept.set(key, { content, rank: rank ?? before?.rank, order: (before?.order ?? 0) + 1 })
    for (const { events, watched } of gateways) if (watched.has(key)) events.onPushed?.(stateOf(key), false)
    return { outcome: 'taken' }
  }

  return (events: PushedEvents): PushedBackbone => {
    const watched = new Set<string>()
    gateways.add({ events, watched })
    return {
      watch(key) {
        if (watched.has(key)) return
        watched.add(key)
        queueMicrotask(() => events.onPushed?.(stateOf(key), false))
      },
      unwatch: key => void watched.delete(key),
      get: key => queueMicrotask(() => events.onPushed?.(stateOf(key), true)),
      cancelGet() {},
      renewWatch() {},
      handOver: async value => handOver(value),
      ownerOf: () => ({ node: 'memory', alive: !isAway() }),
      nodesAlive: () => Number(!isAway()),
    }
  }
}
