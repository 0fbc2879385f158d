// Publishers that go on whatever happens: a message whose outcome is not known is sent again under its messageId, over
// another connection if need be. In the end every acknowledged message has to be in its room, once.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Target } from '../support/client.ts'
import { openRoomClient, type RoomClient } from '../support/room-client.ts'

/** Between two messages of a publisher. With this many a room holds what is published in minutes, as shipped. */
const PAUSE_MS = 40

/** Before the next try, where nothing says how long to wait. */
const RETRY_MS = 500

/** The interval at which a waiting check looks again. */
const LOOK_MS = 100

interface Acknowledged {
  room: string
  epoch: string
  seq: number
  messageId: string
}

/** @param count of publishers, each with a room of its own */
export function startPublishers(target: Target, count: number) {
  const run = randomBytes(6).toString('hex')
  const stopping = new AbortController()
  const acknowledged: Acknowledged[] = []
  let retries = 0
  /** Another try would not help. */
  let refused: Error | undefined
  const publishers = Array.from({ length: count }, (_, index) => publish(`room:check-${run}-${index}`))

  async function publish(room: string) {
    let client: RoomClient | undefined
    for (let number = 0; !stopping.signal.aborted; number++) {
      const messageId = `${run}-${String(number).padStart(8, '0')}`
      for (let kept = false; !kept; ) {
        try {
          client ??= await openRoomClient(target, AbortSignal.timeout(RETRY_MS * 10))
          const answer = await client.publish(room, messageId, number)
          kept = answer.type === 'published'
          if (kept) acknowledged.push({ room, epoch: answer.epoch, seq: answer.seq, messageId })
          else if (answer.retryAfterMs !== undefined) await delay(answer.retryAfterMs)
          else {
            refused = new Error(`${room}: ${answer.code}: ${answer.message}`)
            return
          }
        } catch {
          client?.close()
          client = undefined
          await delay(RETRY_MS)
        }
        if (!kept) retries++
      }
      await delay(PAUSE_MS)
    }
    client?.close()
  }

  return {
    acknowledged: () => acknowledged.length,
    retries: () => retries,

    /** Waits until so many more are acknowledged. */
    async goOn(more: number, signal: AbortSignal) {
      const enough = acknowledged.length + more
      while (acknowledged.length < enough) {
        if (refused) throw refused
        signal.throwIfAborted()
        await delay(LOOK_MS)
      }
    },

    /**
     * Stops them, and reads every room.
     *
     * @param options `mayBeginEpoch`: what was killed says by another epoch that it may have lost something; here
     *   nothing may be
     * @throws {Error} names the messages that are lost, there twice, or under a number other than the acknowledged one
     */
    async conclude(signal: AbortSignal, { mayBeginEpoch = false }: { mayBeginEpoch?: boolean } = {}) {
      stopping.abort()
      await Promise.all(publishers)
      const reader = await openRoomClient(target, signal)
      const rooms = new Map(acknowledged.map(({ room }) => [room, [] as RoomClient['messages']]))
      for (const [room, messages] of rooms) {
        const { epoch } = await reader.subscribe(room)
        for (let seq = 0, more = true; more; seq = messages.at(-1)?.seq ?? seq) {
          const part = await reader.historyAfter(room, { epoch, seq })
          messages.push(...part.messages)
          more = part.more === true
        }
        if (messages.some(({ seq }, index) => seq !== index + 1)) throw new Error(`${room} has a hole`)
        const ids = new Set(messages.map(({ messageId }) => messageId))
        if (ids.size !== messages.length) throw new Error(`${room} has a message twice`)
        for (const each of acknowledged.filter(each => each.room === room)) {
          const found = messages[each.seq - 1]
          if (each.epoch !== epoch && !mayBeginEpoch) throw new Error(`${room} has another epoch`)
          if (found?.messageId !== each.messageId) throw new Error(`${room} has lost message ${each.seq}`)
        }
      }
      reader.close()
      return acknowledged.length
    },

    stop: () => stopping.abort(),
  }
}
