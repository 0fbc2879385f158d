// Notices messages that other journals append to a shared log: by hints, and once a second by comparing the heads of
// all watched rooms, because a hint may be lost. Each link reads the messages themselves from the log.
import type { Position } from '@keycast/protocol'
import type { Every } from '@keycast/service'
import type { News } from './log/log.ts'

/** A message whose hint was lost is noticed within this time. */
const COMPARE_MS = 1_000

interface Deps {
  news: News
  /** Of messages, and of values: each knows its own keys, and tells the links that watch them. */
  followers: { raise: (room: string, head: Position & { oldest?: number }) => void; keys: () => string[] }[]
  /** Whether the log could be asked. */
  onReached: (isReached: boolean) => void
  every: Every
}

/** @returns stops it */
export function followOtherJournals({ news, followers, onReached, every }: Deps): () => void {
  let isComparing = false

  function note(room: string, head: Position & { oldest?: number }) {
    for (const { raise } of followers) raise(room, head)
  }

  async function compare() {
    if (isComparing) return
    isComparing = true
    try {
      for (const { room, head } of await news.heads(followers.flatMap(({ keys }) => keys()))) note(room, head)
      onReached(true)
    } catch {
      // The log says itself why.
      onReached(false)
    } finally {
      isComparing = false
    }
  }

  news.listen(note)
  return every(COMPARE_MS, compare)
}
