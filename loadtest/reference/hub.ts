// What a chat needs in one place, whichever process its users are connected to: the order of each room's messages, and
// names that only one member of a room has. With several processes it lies in the cluster's primary.
import cluster from 'node:cluster'

/**
 * @typedef {{ key: string, seq: number, at: number, messageId?: string, data?: unknown }} Message
 *
 * @typedef {object} Hub
 * @property {(message: Omit<Message, 'seq' | 'at'>, done: (message: Message) => void) => void} publish every process
 *   delivers it, this one before `done`
 * @property {(key: string, name: string, answer: (isGranted: boolean) => void) => void} claim a name in a room
 * @property {(key: string, name: string) => void} release
 *
 * A worker's question to the primary, and what the primary says to workers. `ref` finds the question of an answer.
 * @typedef {{ ref: number, publish: Omit<Message, 'seq' | 'at'> } | { ref: number, claim: [string, string] }
 *   | { release: [string, string] }} Question
 * @typedef {{ ref?: number, message: Message } | { ref: number, isGranted: boolean }} Said
 */

/** Rooms of one process. */
function createRooms() {
  /** The number of messages of each room. @type {Map<string, number>} */
  const heads = new Map()
  /** @type {Set<string>} */
  const names = new Set()
  /** A key has no space. @param {string} key @param {string} name */
  const entry = (key, name) => `${key} ${name}`

  return {
    /** @param {Omit<Message, 'seq' | 'at'>} message @returns {Message} */
    number(message) {
      const seq = (heads.get(message.key) ?? 0) + 1
      heads.set(message.key, seq)
      const { key, ...rest } = message
      return { key, seq, at: Date.now(), ...rest }
    },
    /** @param {string} key @param {string} name */
    claim(key, name) {
      if (names.has(entry(key, name))) return false
      names.add(entry(key, name))
      return true
    },
    /** @param {string} key @param {string} name */
    release: (key, name) => void names.delete(entry(key, name)),
  }
}

/** The hub of a server that is one process. @param {(message: Message) => void} deliver @returns {Hub} */
export function createHub(deliver) {
  const rooms = createRooms()
  return {
    publish(message, done) {
      const numbered = rooms.number(message)
      deliver(numbered)
      done(numbered)
    },
    claim: (key, name, answer) => answer(rooms.claim(key, name)),
    release: rooms.release,
  }
}

/** The hub as a worker has it: it asks the primary. @param {(message: Message) => void} deliver @returns {Hub} */
export function createWorkerHub(deliver) {
  /** @type {Map<number, (said: any) => void>} */
  const asked = new Map()
  let refs = 0
  const ask = (/** @type {object} */ question, /** @type {(said: any) => void} */ onAnswer) => {
    refs += 1
    asked.set(refs, onAnswer)
    process.send?.({ ref: refs, ...question })
  }
  process.on('message', said => {
    const { ref = 0, message, isGranted } = /** @type {any} */ (said)
    if (message !== undefined) deliver(message)
    asked.get(ref)?.(message ?? isGranted)
    asked.delete(ref)
  })

  return {
    publish: (message, done) => ask({ publish: message }, done),
    claim: (key, name, answer) => ask({ claim: [key, name] }, answer),
    release: (key, name) => void process.send?.({ release: [key, name] }),
  }
}

/** Answers the hubs of all workers, from the cluster's primary. */
export function answerWorkers() {
  const rooms = createRooms()
  cluster.on('message', (asker, question) => {
    const { ref, publish, claim, release } = question
    if (release !== undefined) rooms.release(release[0], release[1])
    if (claim !== undefined) asker.send({ ref, isGranted: rooms.claim(claim[0], claim[1]) })
    if (publish === undefined) return
    const message = rooms.number(publish)
    for (const worker of Object.values(cluster.workers ?? {})) {
      worker?.send(worker === asker ? { ref, message } : { message })
    }
  })
}
