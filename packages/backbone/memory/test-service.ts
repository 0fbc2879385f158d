// A second service, for tests: rooms whose entries are numbered within an epoch. It shows that links and hubs carry
// more than values: positions in an order, many answers per key, and commands with results.
import { createLink } from '../gateway/link.ts'
import { createHub } from '../hub/hub.ts'
import { WireError } from '../wire/codec.ts'

/**
 * @typedef {{ epoch: string, seq: number }} Position
 * @typedef {{ key: string, epoch: string, seq: number, data: Buffer, stamp: Buffer }} Entry
 * @typedef {{ type: 'append', key: string, data: Buffer, stamp: Buffer } | { type: 'rewind', key: string }} Command
 * @typedef {{ seq: number, isDuplicate: boolean }} Result
 * @typedef {{ Position: Position, Payload: { reader: string }, Answer: Entry, Notice: never, Command: Command,
 *   Result: Result, Heads: Record<string, number> }} Log
 */

/** @type {import('../wire/codec.ts').Codec<Log>} */
const logCodec = {
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

/** @type {any} */
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * A node that keeps the rooms.
 *
 * @param {Pick<Parameters<typeof createHub>[0], 'bind' | 'now' | 'every'>} options
 */
export async function startLogNode(options) {
  const hub = createHub({ codec: logCodec, log: silent, ...options })
  /** @type {Map<string, { entries: Entry[], seqOfId: Map<string, number> }>} */
  const rooms = new Map()
  /** The position of each link in each key. @type {Map<string, Map<string, number>>} */
  const cursors = new Map()
  /** @type {string[]} */
  const readers = []

  /** @param {string} key */
  function roomOf(key) {
    /** @type {{ entries: Entry[], seqOfId: Map<string, number> }} */
    const room = rooms.get(key) ?? { entries: [], seqOfId: new Map() }
    rooms.set(key, room)
    return room
  }

  /** @param {string} key @param {string} id @param {Buffer} data @param {Buffer} stamp @returns {Result} */
  function append(key, id, data, stamp) {
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
  return { hub, readers, append, entriesOf: (/** @type {string} */ key) => roomOf(key).entries }
}

/**
 * A gateway's link to it, which takes each room's entries in order.
 *
 * @param {Pick<Parameters<typeof createLink>[0], 'dial' | 'now' | 'every'>} options
 */
export function startLogLink(options) {
  /** @type {Entry[]} */
  const received = []
  /** @type {Map<string, Position>} */
  const positions = new Map()
  /** @type {Record<string, number>[]} */
  const heads = []
  const reader = { name: 'ann' }
  const link = createLink({
    codec: logCodec,
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

  /**
   * @param {string} key @param {string} id @param {string} text
   * @returns {Promise<import('../gateway/commands.ts').CommandEnd<Result>>}
   */
  function append(key, id, text, deadlineMs = 600_000) {
    const command = { type: /** @type {const} */ ('append'), key, data: Buffer.from(text), stamp: Buffer.from(id) }
    return new Promise(resolve => link.command({ id, key, command, deadlineMs }, resolve))
  }
  return { link, received, heads, reader, append }
}
