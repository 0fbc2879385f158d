// A second service, for tests: rooms whose entries are numbered within an epoch. It shows that links and hubs carry
// more than values: positions in an order, many answers per key, and commands with results.
import type { World } from '@keycast/service'
import type { CommandEnd } from '../gateway/commands.ts'
import { createLink, type Dial } from '../gateway/link.ts'
import { type Bind, createHub } from '../hub/hub.ts'
import { type Codec, WireError } from '../wire/codec.ts'

interface Position {
  epoch: string
  seq: number
}

interface Entry {
  key: string
  epoch: string
  seq: number
  data: Buffer
  stamp: Buffer
}

type Command = { type: 'append'; key: string; data: Buffer; stamp: Buffer } | { type: 'rewind'; key: string }

interface Result {
  seq: number
  isDuplicate: boolean
}

interface Log {
  Position: Position
  Payload: { reader: string }
  Answer: Entry
  Notice: never
  Command: Command
  Result: Result
  Heads: Record<string, number>
}

const logCodec: Codec<Log> = {
  wire: 'log/1.0',
  readPosition({ epoch, seq }) {
    if (typeof epoch !== 'string' || !Number.isSafeInteger(seq))
      throw new WireError('a position is a place in an epoch')
    return { epoch, seq }
  },
  readPayload: ({ reader }) => ({ reader: String(reader) }),
  encodeAnswer: ({ data, stamp, ...head }) => ({ head, parts: [data, stamp] }),
  decodeAnswer: (head, [data, stamp]) => ({ ...head, data, stamp }),
  encodeCommand(command) {
    if (command.type !== 'append') return { head: command, parts: [] }
    const { data, stamp, ...head } = command
    return { head, parts: [data, stamp] }
  },
  // `rewind` is a command of a newer release.
  decodeCommand: (head, [data, stamp]) => (head.type === 'append' ? { ...head, data, stamp } : undefined),
  readResult: ({ seq, isDuplicate }) => ({ seq, isDuplicate }),
  readHeads: heads => ({ ...heads }),
}

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

/** A node that keeps the rooms. */
export async function startLogNode(options: World & { bind: Bind }) {
  const hub = createHub({ codec: logCodec, log: silent, ...options })
  const rooms = new Map<string, { entries: Entry[]; seqOfId: Map<string, number> }>()
  /** The position of each link in each key. */
  const cursors = new Map<string, Map<string, number>>()
  const readers: string[] = []

  function roomOf(key: string) {
    const room: { entries: Entry[]; seqOfId: Map<string, number> } = rooms.get(key) ?? {
      entries: [],
      seqOfId: new Map(),
    }
    rooms.set(key, room)
    return room
  }

  function append(key: string, id: string, data: Buffer, stamp: Buffer): Result {
    const { entries, seqOfId } = roomOf(key)
    const seq = seqOfId.get(id)
    if (seq !== undefined) return { seq, isDuplicate: true }
    entries.push({ key, epoch: 'E', seq: entries.length + 1, data, stamp })
    seqOfId.set(id, entries.length)
    for (const [link, keys] of cursors) if (keys.has(key)) hub.tell(link, key)
    return { seq: entries.length, isDuplicate: false }
  }

  await hub.start({
    onWatch(link, { key, position, payload }) {
      readers.push(payload?.reader ?? '')
      const keys = cursors.get(link) ?? new Map()
      cursors.set(link, keys.set(key, position?.epoch === 'E' ? position.seq : 0))
      hub.tell(link, key)
    },
    onUnwatch: (link, key) => void cursors.get(link)?.delete(key),
    onGet() {},
    onCancelGet() {},
    onCommand(link, id, command) {
      if (command.type === 'append') hub.tellResult(link, id, append(command.key, id, command.data, command.stamp))
    },
    onLinkLost: link => void cursors.delete(link),
    answersFor(link, key, bytesLeft) {
      const cursor = cursors.get(link)?.get(key)
      if (cursor === undefined) return { answers: [], more: false }
      const { entries } = roomOf(key)
      const answers = []
      let bytes = 0
      for (let at = cursor; at < entries.length && (answers.length === 0 || bytes < bytesLeft); at++) {
        answers.push(entries[at])
        bytes += entries[at].data.length
      }
      cursors.get(link)?.set(key, cursor + answers.length)
      return { answers, more: cursor + answers.length < entries.length }
    },
    headsFor: link => Object.fromEntries(cursors.get(link) ?? []),
  })
  return { hub, readers, append, entriesOf: (key: string) => roomOf(key).entries }
}

/** A gateway's link to it, which takes each room's entries in order. */
export function startLogLink(options: World & { dial: Dial }) {
  const received: Entry[] = []
  const positions = new Map<string, Position>()
  const heads: Record<string, number>[] = []
  const reader = { name: 'ann' }
  const link = createLink({
    codec: logCodec,
    node: 'n1',
    log: silent,
    events: {
      position: key => positions.get(key),
      payload: () => ({ reader: reader.name }),
      onAnswer({ key, epoch, seq, ...rest }) {
        positions.set(key, { epoch, seq })
        received.push({ key, epoch, seq, ...rest })
      },
      onHeads: said => heads.push(said),
      onAlive() {},
      onDead() {},
    },
    ...options,
  })
  link.start()

  function append(key: string, id: string, text: string, deadlineMs = 600_000): Promise<CommandEnd<Result>> {
    const command = { type: 'append' as const, key, data: Buffer.from(text), stamp: Buffer.from(id) }
    return new Promise(resolve => link.command(id, { key, command, deadlineMs }, resolve))
  }
  return { link, received, heads, reader, append }
}
