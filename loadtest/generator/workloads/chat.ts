// Users who chat: each enters its rooms, publishes into them at times fixed beforehand, and checks that it is sent every
// message of them once and in order.
import { randomBytes } from 'node:crypto'
import { type Client, received } from '../client.ts'
import type { ClientBehaviour } from '../clients.ts'
import { afterHello } from '../dialects/after-hello.ts'
import { codeIn, numberAfter } from '../dialects/fields.ts'
import { dialects } from '../dialects/index.ts'
import { createMessageReader } from '../dialects/read-in-place.ts'
import { encodeFrame } from '../frames.ts'
import { record } from '../histogram.ts'
import type { CreateWorkload } from '../workload.ts'

/** Type, key, seq, time, publisher, messageId and the stamp. */
const HEAD_BYTES = 320

export const counts = [
  'entered',
  'requested',
  'published',
  'refusals',
  'lost',
  'messages',
  'disorder',
  'gaps',
  'unexpected',
  'bodyBytes',
] as const
export const histograms = ['latency', 'published'] as const

/**
 * `rooms`: the first user is in the first of them, the next in the next, and so on around. `publishers`: so many of the
 * users publish, the first ones; `messages` of each, one each `everyMs`. `names`: each user enters under a name of its
 * own.
 */
interface ChatSettings {
  dialect: string
  rooms: string[]
  publishers: number
  messages: number
  everyMs: number
  names: boolean
}

/**
 * `entering`: answers still to come until it is in; `lastSeq`: NaN until the first message; `sentUs`: when the
 * publishes under way were due, by id.
 */
interface User {
  client: Client
  room: string
  name: string
  publishes: boolean
  entering: number
  sent: number
  lastSeq: number
  sentUs: Map<number, number>
}

/** When the first publish was due, and the last message came. */
export interface ChatOutcome {
  firstUs: number
  lastUs: number
}

export const createWorkload: CreateWorkload<ChatSettings, typeof counts, typeof histograms> = ({
  settings,
  tally,
  newSchedule,
  nowUs,
}) => {
  const { rooms, publishers, messages, everyMs, names } = settings
  const dialect = dialects[settings.dialect]
  const readMessage = createMessageReader(dialect)
  const tallied = tally.counts
  const users = new Set<User>()
  let firstUs = Number.POSITIVE_INFINITY
  let lastUs = 0

  const schedule = newSchedule<User>(everyMs, ({ item }, dueUs) => {
    if (item.sent === messages) return
    item.sent += 1
    firstUs = Math.min(firstUs, dueUs)
    item.sentUs.set(item.sent, dueUs)
    tallied.requested += 1
    const messageId = `${item.name}-${item.sent}`
    item.client.send(encodeFrame(dialect.publish(item.sent, item.room, messageId, Math.round(dueUs))))
  })

  return {
    behaviour: afterHello(dialect, { headBytesMax: HEAD_BYTES, readsInPlace: true, open }, tallied),
    outstanding() {
      let sum = 0
      for (const { sentUs } of users) sum += sentUs.size
      return sum
    },
    /** Everybody is there: begin. */
    tell() {
      schedule.start()
      for (const user of users) if (user.publishes) schedule.add(user)
    },
    stop: schedule.stop,
    outcome: (): ChatOutcome => ({ firstUs, lastUs }),
  }

  function open(client: Client, number: number): ClientBehaviour {
    const room = rooms[number % rooms.length]
    const enter = dialect.enter(room, names ? `user ${number}` : undefined)
    const user: User = {
      client,
      room,
      name: randomBytes(12).toString('base64url'),
      publishes: number < publishers,
      entering: enter.length,
      sent: 0,
      lastSeq: Number.NaN,
      sentUs: new Map(),
    }
    users.add(user)
    for (const message of enter) client.send(encodeFrame(message))
    return {
      onWhole(from, at, end) {
        const message = readMessage(from, at, end)
        if (message === undefined) return false
        delivered(user, message.seq, message.us, end - at)
        return true
      },
      onMessage: (head, bytes) => onMessage(user, head, bytes),
      onEnd() {
        users.delete(user)
        tallied.lost += user.sentUs.size
      },
    }
  }

  function delivered(user: User, seq: number, dueUs: number, bytes: number) {
    if (seq !== user.lastSeq + 1 && !Number.isNaN(user.lastSeq)) tallied.disorder += 1
    user.lastSeq = seq
    lastUs = received.atUs
    tallied.messages += 1
    tallied.bodyBytes += bytes
    tally.recorders.latency(lastUs - dueUs)
  }

  function onMessage(user: User, head: string, bytes: number) {
    const kind = dialect.kindOf(head)
    switch (kind) {
      case 'message':
        return delivered(user, numberAfter(head, '"seq":'), numberAfter(head, '"us":'), bytes)
      case 'answered':
      case 'refused': {
        const id = dialect.idOf(head)
        const dueUs = user.sentUs.get(id)
        if (kind === 'refused') tally.because(`error: ${codeIn(head)}`)
        if (dueUs === undefined) {
          tallied.unexpected += 1
          return undefined
        }
        user.sentUs.delete(id)
        if (kind === 'refused') {
          tallied.refusals += 1
          return undefined
        }
        tallied.published += 1
        return record(tally.histograms.published, nowUs() - dueUs)
      }
      case 'entered':
        user.entering -= 1
        if (user.entering === 0) tallied.entered += 1
        return undefined
      case 'gap':
        tallied.gaps += 1
        return undefined
      case 'ignored':
        return undefined
      default:
        if (typeof kind === 'object') user.client.send(encodeFrame(kind.reply))
        else tallied.unexpected += 1
        return undefined
    }
  }
}
