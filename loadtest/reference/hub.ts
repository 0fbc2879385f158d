// What a chat needs in one place, whichever process its users are connected to: the order of each room's messages, and
// names that only one member of a room has. With several processes it lies in the cluster's primary.
import cluster from 'node:cluster'

export interface Message {
  key: string
  seq: number
  at: number
  messageId?: string
  data?: unknown
}

export interface Hub {
  /** Every process delivers it, this one before `done`. */
  publish: (message: Omit<Message, 'seq' | 'at'>, done: (message: Message) => void) => void
  /** A name in a room. */
  claim: (key: string, name: string, answer: (isGranted: boolean) => void) => void
  release: (key: string, name: string) => void
}

/** Rooms of one process. */
function createRooms() {
  /** The number of messages of each room. */
  const heads = new Map<string, number>()
  const names = new Set<string>()
  /** A key has no space. */
  const entry = (key: string, name: string) => `${key} ${name}`

  return {
    number(message: Omit<Message, 'seq' | 'at'>): Message {
      const seq = (heads.get(message.key) ?? 0) + 1
      heads.set(message.key, seq)
      const { key, ...rest } = message
      return { key, seq, at: Date.now(), ...rest }
    },
    claim(key: string, name: string) {
      if (names.has(entry(key, name))) return false
      names.add(entry(key, name))
      return true
    },
    release: (key: string, name: string) => void names.delete(entry(key, name)),
  }
}

/** The hub of a server that is one process. */
export function createHub(deliver: (message: Message) => void): Hub {
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

/** What the primary says, of itself or in answer to `ref`. */
interface Said {
  ref?: number
  message?: Message
  isGranted?: boolean
}

/** The hub as a worker has it: it asks the primary. */
export function createWorkerHub(deliver: (message: Message) => void): Hub {
  const asked = new Map<number, (said: Said) => void>()
  let refs = 0
  const ask = (question: object, onAnswer: (said: Said) => void) => {
    refs += 1
    asked.set(refs, onAnswer)
    process.send?.({ ref: refs, ...question })
  }
  process.on('message', said => {
    const answer = said as Said
    if (answer.message !== undefined) deliver(answer.message)
    asked.get(answer.ref ?? 0)?.(answer)
    asked.delete(answer.ref ?? 0)
  })

  return {
    publish: (message, done) => ask({ publish: message }, said => done(said.message as Message)),
    claim: (key, name, answer) => ask({ claim: [key, name] }, said => answer(said.isGranted === true)),
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
