// Clients of rooms, over WebSocket, whose every sight goes to a checker.
import WebSocket from 'ws'
import { atEnd } from './cleanup.ts'
import { createConditions, within } from './deadline.ts'

export type RoomClient = Awaited<ReturnType<typeof joinRooms>>

interface JoinRoomsOptions {
  /** To the checker; one that resumes elsewhere keeps it. */
  name?: string
  checker?: ReturnType<typeof import('./checker.ts').createChecker>
  headers?: Record<string, string>
  onMessage?: (message: any) => void
}

/** A client that notes what it is told of rooms. */
export async function joinRooms(
  url: string,
  { name = '', checker, headers = {}, onMessage = () => {} }: JoinRoomsOptions = {},
) {
  const socket = new WebSocket(url, [], { perMessageDeflate: false, headers })
  atEnd(() => socket.terminate())
  const received: any[] = []
  /** The position of its stream in each room. */
  const positions = new Map<string, { epoch: string; seq: number }>()
  const requests = new Map<unknown, (message: any) => void>()
  const { look, until } = createConditions()
  let lastId = 0
  let isKept = true

  socket.on('message', bytes => {
    const message = JSON.parse(bytes.toString())
    if (isKept) received.push(message)
    note(message)
    onMessage(message)
    requests.get(message.id)?.(message)
    look()
  })
  const ended = new Promise(resolve => socket.on('close', code => resolve(code)))
  socket.on('error', () => {})

  function note({ type, key, keys, seq, epoch, messageId, data }: any) {
    if (type === 'subscribed') {
      for (const each of keys) {
        const after = each.seq - each.count
        const sight = each.recovered || !positions.has(each.key) ? 'head' : 'gap'
        positions.set(each.key, { epoch: each.epoch, seq: after })
        checker?.saw(name, each.key, { type: sight as any, epoch: each.epoch, seq: each.seq, after })
      }
    } else if (type === 'gap') {
      positions.set(key, { epoch, seq })
      checker?.saw(name, key, { type, epoch, seq })
    } else if (type === 'message') {
      const position = positions.get(key) ?? { epoch: '', seq: 0 }
      position.seq = seq
      checker?.saw(name, key, { type, epoch: position.epoch, seq, messageId, data: JSON.stringify(data) })
    }
  }

  const client = {
    socket,
    received,
    positions,
    ended,
    /** Counts on without what is received being kept. */
    keepNothing() {
      isKept = false
      received.length = 0
    },
    send: (message: object) => socket.send(JSON.stringify(message)),
    /** @returns the first message with its id */
    request(request: object): Promise<any> {
      const id = ++lastId
      const answered = new Promise(resolve => requests.set(id, resolve)).finally(() => requests.delete(id))
      client.send({ ...request, id })
      return within(answered, () => `an answer to ${JSON.stringify(request).slice(0, 100)}`)
    },
    /** @returns `subscribed` with all the rooms, each of which is told in one of its own; with none where all are refused */
    subscribe(...keys: (string | object)[]): Promise<any> {
      const id = ++lastId
      const told: object[] = []
      const answered = new Promise(resolve =>
        requests.set(id, message => {
          if (message.type === 'subscribed') told.push(...message.keys)
          const isLast = told.length === 0 || told.length === keys.length
          if (message.type !== 'subscribed' || isLast) resolve({ ...message, keys: told })
        }),
      ).finally(() => requests.delete(id))
      client.send({ type: 'subscribe', keys, id })
      return within(answered, () => `an answer to subscribe ${JSON.stringify(keys).slice(0, 100)}`)
    },
    publish: (key: string, data: unknown, messageId?: string) =>
      client.request({ type: 'publish', key, messageId, data }),
    /** Takes a room up where another connection of the same client was. */
    resume(from: Map<string, { epoch: string; seq: number }>) {
      for (const [key, position] of from) positions.set(key, position)
      return client.subscribe(...[...from].map(([key, after]) => ({ key, after: { ...after } })))
    },
    /** Of one type, or of one room as well. */
    all: (type: string, key?: string): any[] =>
      received.filter(each => each.type === type && (key === undefined || each.key === key)),
    until,
  }
  const refused = ended.then(code => {
    throw new Error(`closed with ${code} before the welcome`)
  })
  await Promise.race([client.until(() => received.some(({ type }) => type === 'welcome'), 'the welcome'), refused])
  refused.catch(() => {}) // it ends some time
  return client
}

/** A client, as the load and the reader of histories take it. */
export const asBackbone = (client: RoomClient): any => ({
  isAvailable: () => true,
  async publish(
    { room, messageId, data }: { room: string; messageId: string; data: Buffer },
    _: unknown,
    done: (outcome: unknown) => void,
  ) {
    const answer = await client.publish(room, JSON.parse(data.toString()), messageId)
    done(answer.type === 'published' ? answer : { code: answer.code })
  },
  async history(key: string, range: { after: number; limit: number }) {
    const answer = await client.request({ type: 'history', key, ...range })
    if (answer.type !== 'history') return { code: answer.code }
    const messages = answer.messages.map(({ data, ...rest }: any) => ({
      ...rest,
      data: Buffer.from(JSON.stringify(data)),
    }))
    return { ...answer, messages }
  },
})
