// Notices messages that other journals append to a shared log: by hints, and once a second by comparing the heads of
// all watched rooms, because a hint may be lost. Each link reads the messages themselves from the log.

/** A message whose hint was lost is noticed within this time. */
const COMPARE_MS = 1_000

/**
 * @param {object} deps
 * @param {import('./log/log.ts').News} deps.news
 * @param {Pick<ReturnType<typeof import('./watched-rooms.ts').createWatchedRooms>, 'raise' | 'keys'>} deps.rooms
 * @param {(link: string, room: string) => void} deps.tell
 * @param {import('@keycast/service').Every} deps.every
 * @returns {() => void} stops it
 */
export function followNews({ news, rooms, tell, every }) {
  let isComparing = false

  /** @param {string} room @param {import('./log/log.ts').Position} position */
  function note(room, position) {
    for (const link of rooms.raise(room, position)) tell(link, room)
  }

  async function compare() {
    if (isComparing) return
    isComparing = true
    try {
      for (const { room, position } of await news.heads(rooms.keys())) note(room, position)
    } catch {
      // The log says itself that it cannot be reached.
    } finally {
      isComparing = false
    }
  }

  news.listen(note)
  return every(COMPARE_MS, compare)
}
