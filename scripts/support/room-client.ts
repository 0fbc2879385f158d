// A client of rooms for commands that drive a running system: requests by id, and the messages it was sent.
import { once } from 'node:events'
import { openSocket } from './client.ts'

/**
 * @typedef {{ epoch: string, seq: number }} Position
 * @typedef {Awaited<ReturnType<typeof openRoomClient>>} RoomClient
 */

/**
 * @param {import('./client.ts').Target} target
 * @param {AbortSignal} signal
 */
export async function openRoomClient(target, signal) {
  const socket = openSocket(target)
  /**
   * The promise of each request's answer.
   *
   * @type {Map<number, { resolve: (answer: any) => void, reject: (error: Error) => void }>}
   */
  const requests = new Map()
  /** Messages of rooms, as they came. @type {any[]} */
  const messages = []
  const heard = new EventTarget()
  let lastId = 0

  socket.on('message', bytes => {
    const message = JSON.parse(bytes.toString())
    if (message.type === 'message') {
      messages.push(message)
      heard.dispatchEvent(new Event('message'))
    }
    requests.get(message.id)?.resolve(message)
    requests.delete(message.id)
  })
  socket.on('close', () => {
    for (const { reject } of requests.values()) reject(new Error('the connection was lost'))
    requests.clear()
  })
  await once(socket, 'open', { signal })
  socket.on('error', () => {}) // 'close' follows

  /** @param {object} asked @returns {Promise<any>} its answer, also where that is an error */
  const request = asked => {
    const id = ++lastId
    socket.send(JSON.stringify({ ...asked, id }))
    return new Promise((resolve, reject) => requests.set(id, { resolve, reject }))
  }

  return {
    messages,
    /** @param {string} key @param {{ after?: Position, last?: number }} [from] */
    async subscribe(key, from = {}) {
      const answer = await request({ type: 'subscribe', keys: [{ key, ...from }] })
      if (answer.type !== 'subscribed') throw new Error(`subscribe: ${answer.code}: ${answer.message}`)
      return answer.keys[0]
    },
    /** @param {string} key @param {string} messageId @param {unknown} data */
    publish: (key, messageId, data) => request({ type: 'publish', key, messageId, data }),
    /** @param {string} key @param {Position & { limit?: number }} from */
    async historyAfter(key, { epoch, seq, limit = 500 }) {
      const answer = await request({ type: 'history', key, epoch, after: seq, limit })
      if (answer.type !== 'history') throw new Error(`history: ${answer.code}: ${answer.message}`)
      return answer
    },
    /** The message with an id. @param {string} messageId @param {AbortSignal} until */
    async message(messageId, until) {
      for (;;) {
        const found = messages.find(message => message.messageId === messageId)
        if (found) return found
        await once(heard, 'message', { signal: until })
      }
    },
    close: () => socket.terminate(),
  }
}
