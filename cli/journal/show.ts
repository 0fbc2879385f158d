// The rooms of a log, and the messages of one, as lines: for a person, or as JSON for a program.
import { decode, type Room, type Tables } from '../../services/journal/log/lmdb/layout.ts'

export function* roomsLines({ env, rooms, meta }: Tables, forPerson: boolean): Iterable<string> {
  const transaction = env.useReadTransaction()
  try {
    const epoch = meta.get('epoch', { transaction })
    if (forPerson) yield `epoch ${epoch}\n${'newest'.padStart(10)}${'oldest'.padStart(10)}${'bytes'.padStart(12)}  room`
    for (const { key: room, value } of rooms.getRange({ transaction })) {
      const { seq, oldest, bytes } = value
      yield forPerson
        ? `${String(seq).padStart(10)}${String(oldest).padStart(10)}${String(bytes).padStart(12)}  ${printable(room)}`
        : JSON.stringify({ room, epoch, seq, oldest, bytes })
    }
  } finally {
    transaction.done()
  }
}

/**
 * @param options `last`: only the newest so many
 * @returns nothing where there is no such room
 */
export function roomLines(
  tables: Tables,
  name: string,
  { after, last, forPerson }: { after: number; last: number | undefined; forPerson: boolean },
): Iterable<string> | undefined {
  const room = tables.rooms.get(name)
  if (!room) return undefined
  const first = Math.max(after + 1, room.oldest, last === undefined ? 0 : room.seq - last + 1)
  return messageLines(tables, room, first, forPerson)
}

function* messageLines(
  { messages }: Tables,
  { id, seq: newest, value: isValue }: Room,
  first: number,
  forPerson: boolean,
) {
  for (const { key, value } of messages.getRange({ start: [id, first], end: [id, newest + 1] })) {
    const [, seq] = key
    const { at, from, messageId, data } = decode(value)
    // Of a value what is said of it, in JSON: the line before its bytes.
    const text = isValue ? data.toString().split('\n', 1)[0] : data.toString()
    if (forPerson) {
      const time = new Date(at).toISOString()
      yield printable(`${String(seq).padStart(10)}  ${time}  ${from || '(anonymous)'}  ${text}`)
    } else {
      // The data stands as it was published, and lies in one line: a line break within JSON is only between its parts.
      const head = JSON.stringify({ seq, at, from, messageId })
      yield `${head.slice(0, -1)},"data":${text.replaceAll(/[\r\n]/g, ' ')}}`
    }
  }
}

/** Control characters could make a terminal do something. */
function printable(text: string) {
  return text.replaceAll(/\p{Cc}/gu, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
