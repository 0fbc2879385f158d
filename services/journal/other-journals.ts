// Notices messages that other journals append to a shared log: by hints, and once a second by comparing the heads of
// all watched rooms, because a hint may be lost. Each link reads the messages themselves from the log.
import type { Every } from '@keycast/service'
import type { News, Position } from './log/log.ts'

/** A message whose hint was lost is noticed within this time. */
const COMPARE_MS = 1_000

interface Deps {
  news: News
  rooms: { raise: (room: string, head: Position & { oldest?: number }) => Iterable<string>; keys: () => string[] }
  tell: (link: string, room: string) => void
  every: Every
}

/** @returns stops it */
export function followOtherJournals({ news, rooms, tell, every }: Deps): () => void {
  let isComparing = false

  function note(room: string, head: Position & { oldest?: number }) {
    for (const link of rooms.raise(room, head)) tell(link, room)
  }

  async function compare() {
    if (isComparing) return
    isComparing = true
    try {
      for (const { room, head } of await news.heads(rooms.keys())) note(room, head)
    } catch {
      // The log says itself that it cannot be reached.
    } finally {
      isComparing = false
    }
  }

  news.listen(note)
  return every(COMPARE_MS, compare)
}
