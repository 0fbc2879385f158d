// A client of rooms for commands that drive a running system: requests by id, and the messages it was sent.
import { once } from 'node:events'
import { openSocket, type Target } from './client.ts'

export interface Position {
  epoch: string
  seq: number
}

/** A message of a gateway, of any type: docs/protocol-rooms.md says which fields it has. */
interface Said extends Position {
  type: string
  id?: number
  messageId?: string
  data: unknown
  code?: string
  message?: string
  duplicate?: boolean
  retryAfterMs?: number
  /** Of `subscribed`. */
  keys: (Position & { recovered?: boolean; count: number })[]
  /** Of `history`. */
  messages: Said[]
  more?: boolean
}

export type RoomClient = Awaited<ReturnType<typeof openRoomClient>>

export async function openRoomClient(target: Target, signal: AbortSignal) {
  const socket = openSocket(target)
  /** The promise of each request's answer. */
  const requests = new Map<number, { resolve: (answer: Said) => void; reject: (error: Error) => void }>()
  /** Messages of rooms, as they came. */
  const messages: Said[] = []
  const heard = new EventTarget()
  let lastId = 0

  socket.on('message', bytes => {
    const message: Said = JSON.parse(bytes.toString())
    if (message.type === 'message') {
      messages.push(message)
      heard.dispatchEvent(new Event('message'))
    }
    const id = message.id ?? 0
    requests.get(id)?.resolve(message)
    requests.delete(id)
  })
  socket.on('close', () => {
    for (const { reject } of requests.values()) reject(new Error('the connection was lost'))
    requests.clear()
  })
  await once(socket, 'open', { signal })
  socket.on('error', () => {}) // 'close' follows

  /** @returns its answer, also where that is an error */
  const request = (asked: object): Promise<Said> => {
    const id = ++lastId
    socket.send(JSON.stringify({ ...asked, id }))
    return new Promise((resolve, reject) => requests.set(id, { resolve, reject }))
  }

  return {
    messages,
    async subscribe(key: string, from: { after?: Position; last?: number } = {}) {
      const answer = await request({ type: 'subscribe', keys: [{ key, ...from }] })
      if (answer.type !== 'subscribed') throw new Error(`subscribe: ${answer.code}: ${answer.message}`)
      return answer.keys[0]
    },
    publish: (key: string, messageId: string, data: unknown) => request({ type: 'publish', key, messageId, data }),
    async historyAfter(key: string, { epoch, seq, limit = 500 }: Position & { limit?: number }) {
      const answer = await request({ type: 'history', key, epoch, after: seq, limit })
      if (answer.type !== 'history') throw new Error(`history: ${answer.code}: ${answer.message}`)
      return answer
    },
    /** The message with an id. */
    async message(messageId: string, until: AbortSignal) {
      for (;;) {
        const found = messages.find(message => message.messageId === messageId)
        if (found) return found
        await once(heard, 'message', { signal: until })
      }
    },
    close: () => socket.terminate(),
  }
}
