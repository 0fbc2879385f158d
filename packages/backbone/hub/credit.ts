// Limits the bytes of answers that are on their way, to one gateway and to all. Answers that a gateway has not reported
// as taken are in this process's memory, or in that of a peer that may have stopped reading.

/** To one gateway: covers 50 ms of a gigabit. More only delays the latest state. */
export const CREDIT_BYTES = 8 * 2 ** 20

/** To all gateways: covers 50 ms of ten gigabits. Without it, 100 gateways that stall would pin 800 MiB. */
export const CREDIT_TOTAL_BYTES = 64 * 2 ** 20

export function createCredit() {
  let totalBytes = 0

  /** The account of one link. */
  function open() {
    let sentBytes = 0
    let takenBytes = 0
    return {
      /**
       * Whether another message may be sent. A link with nothing under way always may, so none starves. Otherwise each
       * may have as much under way as is left for all: those that stall first leave half of the rest to the next, and
       * as accounts are paid they come to the same share.
       */
      hasRoom() {
        const bytes = sentBytes - takenBytes
        return bytes === 0 || bytes < Math.min(CREDIT_BYTES, CREDIT_TOTAL_BYTES - totalBytes)
      },
      send(bytes: number) {
        sentBytes += bytes
        totalBytes += bytes
      },
      /** @param bytes as the gateway reports since the link began; a report may come late, or lie */
      take(bytes: number) {
        const newlyTaken = Math.max(0, Math.min(bytes, sentBytes) - takenBytes)
        takenBytes += newlyTaken
        totalBytes -= newlyTaken
      },
      close() {
        totalBytes -= sentBytes - takenBytes
        takenBytes = sentBytes
      },
      get sentBytes() {
        return sentBytes
      },
    }
  }

  return { open, bytes: () => totalBytes }
}

export type Account = ReturnType<ReturnType<typeof createCredit>['open']>
