// The links of gateways to a journal: what they publish and see goes to a checker.
import { createZeromqRooms, publishTo } from '@keycast/backbone'
import { isProblem } from '@keycast/protocol'
import type { createChecker } from './checker.ts'
import { atEnd } from './cleanup.ts'
import { eventually } from './deadline.ts'
import { followPositions } from './positions.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

/** Longer than a journal takes to be started again. */
const PUBLISH_DEADLINE_MS = 10_000

const TICK_MS = 10

/** A longer time without a tick is a standstill of this process, and counts as so much. */
const STANDSTILL_MS = 100

/** The most that publishers have under way, at their pace. */
const UNDER_WAY_SECONDS = 2

/** A gateway's side, whose every sight is noted. */
export async function startRooms(name: string, node: string, checker: ReturnType<typeof createChecker>) {
  const { events, positionOf } = followPositions({
    onHead: (room, { epoch, seq, after }) => checker.saw(name, room, { type: 'head', epoch, seq, after }),
    onMessages(room, { epoch, messages }) {
      for (const { seq, messageId, data } of messages) {
        checker.saw(name, room, { type: 'message', epoch, seq, messageId, data: data.toString() })
      }
    },
    onGap: (room, { epoch, seq }) => checker.saw(name, room, { type: 'gap', epoch, seq }),
    onFailed() {},
  })
  const backbone = createZeromqRooms({ nodes: node, log: silent, events })
  await backbone.start()
  atEnd(() => backbone.stop())
  await eventually(() => backbone.isAvailable('room:1'), 'the journal answering')
  return { ...backbone, positionOf }
}

interface Options {
  name: string
  backbone: Awaited<ReturnType<typeof startRooms>>
  checker: ReturnType<typeof createChecker>
  rooms: string[]
  perSecond: number
  deadlineMs?: number
}

/**
 * Publishes at a steady pace into some rooms, and at the journal's where that is slower. A message not acknowledged is sent again under its messageId until it is.
 */
export function startLoad({ name, backbone, checker, rooms, perSecond, deadlineMs = PUBLISH_DEADLINE_MS }: Options) {
  const startedAt = performance.now()
  interface Sent {
    room: string
    messageId: string
    data: string
    result: any
    isAgain: boolean
  }
  const sent: Sent[] = []
  const unsettled: Sent[] = []
  const errors: Record<string, number> = {}
  const underWayMax = Math.max(500, perSecond * UNDER_WAY_SECONDS)
  let underWay = 0
  let acknowledged = 0
  let longestMs = 0
  /** By a clock that stands still with this process. */
  let awakeMs = 0
  let tickedAt = startedAt
  let isStopping = false

  async function send(publish: Sent) {
    const { room, messageId, data } = publish
    underWay++
    const at = awakeMs
    const result = await publishTo(backbone, { room, messageId, from: name, data: Buffer.from(data) }, { deadlineMs })
    longestMs = Math.max(longestMs, awakeMs - at)
    underWay--
    if (!isProblem(result)) {
      publish.result = result
      acknowledged++
      return
    }
    errors[result.code] = (errors[result.code] ?? 0) + 1
    publish.isAgain = true
    unsettled.push(publish)
  }

  function tick() {
    const now = performance.now()
    awakeMs += Math.min(STANDSTILL_MS, now - tickedAt)
    tickedAt = now
    const again = backbone.isAvailable('room:1') ? unsettled.splice(0, 100) : []
    for (const publish of again) send(publish)
    if (isStopping) return
    const due = Math.floor(((performance.now() - startedAt) * perSecond) / 1_000)
    // If the journal is slower than the pace, or away, the publishes under way must not grow without end.
    while (sent.length < due && underWay + unsettled.length < underWayMax) {
      const number = sent.length
      const messageId = `${name}-message-${String(number).padStart(8, '0')}`
      const room = rooms[number % rooms.length]
      sent.push({ room, messageId, data: JSON.stringify(messageId), result: undefined, isAgain: false })
      send(sent[number])
    }
  }
  const timer = setInterval(tick, TICK_MS)
  atEnd(() => clearInterval(timer))

  return {
    count: () => sent.length,
    acknowledged: () => acknowledged,
    errors,
    longestMs: () => longestMs,
    /** Ends when everything is acknowledged. */
    async stop() {
      isStopping = true
      await eventually(() => underWay === 0 && unsettled.length === 0, 'every publish being acknowledged')
      clearInterval(timer)
      for (const { room, messageId, data, result, isAgain } of sent) {
        // Sent again, it may stand behind what was sent meanwhile.
        const publisher = isAgain ? `${name} with ${messageId}` : name
        checker.acknowledged(publisher, room, { ...result, messageId, data })
      }
      return sent
    },
  }
}

/**
 * Reads the whole history of each room, part by part, and gives it to the checker.
 *
 * @returns the messageIds of all
 */
export async function readHistories(
  backbone: Awaited<ReturnType<typeof startRooms>>,
  checker: ReturnType<typeof createChecker>,
  rooms: string[],
): Promise<string[]> {
  const ids = []
  for (const room of rooms) {
    await eventually(() => backbone.isAvailable(room), `the journal of ${room} answering`) // of several, each has some rooms
    const placed = []
    let after = 0
    for (;;) {
      const part = await backbone.history(room, { after, limit: 500 }, { deadlineMs: PUBLISH_DEADLINE_MS })
      if (isProblem(part)) throw new Error(`history of ${room}: ${part.code}`)
      const { epoch, oldest, newest, messages, more } = part
      for (const { seq, messageId, data } of messages) placed.push({ epoch, seq, messageId, data: data.toString() })
      after = placed.at(-1)?.seq ?? 0
      if (more) continue
      checker.history(room, { epoch, oldest, newest, messages: placed })
      break
    }
    ids.push(...placed.map(({ messageId }) => String(messageId)))
  }
  return ids
}

/** Finds messages that were sent and are not there once, and messages that are there and were not sent. */
export function notOnceIn(ids: string[], sent: { messageId: string }[]) {
  const counts = new Map<string, number>(sent.map(({ messageId }) => [messageId, 0]))
  for (const id of ids) counts.set(id, (counts.get(id) ?? 1) + 1)
  return [...counts].filter(([, count]) => count !== 1).slice(0, 10)
}
