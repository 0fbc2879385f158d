// Says whether a log in LMDB is whole: every room has the messages that it lists, and the counts match the tables. LMDB
// keeps no checksums, so a byte that changed within a text is not noticed.
import { decodeKept } from '@keycast/backbone'
import { bytesOf, gapBytesOf, untoldBytesOf } from '../log.ts'
import { idCountOf, idsIn } from './ids.ts'
import { type Counts, decode, type Room, type Tables } from './layout.ts'

/** Further problems are only counted: each message of a room can be one. */
const PROBLEMS_MAX = 20

/** `problems`: the first of them, for an operator. `more`: how many further ones there are. */
export interface Report {
  rooms: number
  messages: number
  bytes: number
  problems: string[]
  more: number
}

/**
 * Reads all of it, in one transaction: a journal that goes on writing meanwhile changes nothing of what is seen here.
 */
export function checkTables({ env, rooms, due, messages, recentIds, heldIds, outbox, meta }: Tables): Report {
  const transaction = env.useReadTransaction()
  const report: Report = { rooms: 0, messages: 0, bytes: 0, problems: [], more: 0 }
  const found = (problem: string) => {
    if (report.problems.length < PROBLEMS_MAX) report.problems.push(problem)
    else report.more++
  }
  try {
    /** The room of each id. */
    const names = new Map<number, string>()
    let scheduled = 0
    for (const { key: name, value: room } of rooms.getRange({ transaction })) {
      report.rooms++
      const other = names.get(room.id)
      if (other !== undefined) found(`${name} and ${other} have the same messages`)
      names.set(room.id, name)
      checkRoom(name, room)
      if (room.dueAt === undefined) continue // opened last by a release that had no such table
      scheduled++
      if (due.get([room.dueAt, room.id], { transaction }) !== name) found(`${name}: nobody will look whether it is old`)
    }
    const listed = due?.getCount({ transaction }) ?? 0
    if (listed !== scheduled) found(`${listed} rooms are to be looked at, and ${scheduled} say when`)
    const stored = messages.getCount({ transaction })
    if (stored !== report.messages) found(`${stored} messages are stored, of which ${report.messages} are of a room`)
    const counts = meta.get('counts', { transaction })
    checkIds(counts)
    checkOutbox(counts)
    if (scheduled > 0 && counts?.rooms !== report.rooms) {
      found(`the log counts ${counts?.rooms} rooms, and has ${report.rooms}`)
    }
    if (report.rooms > 0 && counts?.bytes !== report.bytes) {
      found(`the log counts ${counts?.bytes} bytes, and its rooms have ${report.bytes}`)
    }
  } catch (error) {
    found(`it cannot be read: ${(error as Error).message}`)
  } finally {
    transaction.done()
  }
  return report

  function checkRoom(name: string, { id, seq, oldest, bytes, value: isOfValues }: Room) {
    let next = oldest
    let seen = 0
    for (const { key, value } of messages.getRange({ start: [id, 0], end: [id + 1, 0], transaction })) {
      const [, number] = key
      if (number !== next) found(`${name}: message ${next} is expected, and ${number} is there`)
      next = number + 1
      report.messages++
      try {
        const message = decode(value)
        seen += bytesOf(message)
        if (isOfValues) decodeKept(message.data)
        else JSON.parse(message.data.toString())
      } catch (error) {
        found(`${name}: message ${number} cannot be read: ${(error as Error).message}`)
      }
    }
    if (next !== seq + 1) found(`${name}: it ends with message ${next - 1}, and its last one is ${seq}`)
    if (seen !== bytes) found(`${name}: it counts ${bytes} bytes, and its messages have ${seen}`)
    report.bytes += bytes
  }

  function checkOutbox(counts: Counts | undefined) {
    let bytes = 0
    for (const { key, value } of outbox?.getRange({ transaction }) ?? []) {
      const [room, seq] = key
      bytes += seq === 0 ? gapBytesOf(room) : untoldBytesOf(room, decode(value))
    }
    const counted = counts?.outboxBytes ?? 0
    if (bytes !== counted) found(`${bytes} bytes are still to be told to backends, and the log counts ${counted}`)
  }

  function checkIds(counts: Counts | undefined) {
    let known = heldIds.getCount({ transaction })
    for (const { value } of recentIds.getRange({ transaction })) known += idsIn(value)
    const counted = counts ? idCountOf(counts) : 0
    if (known !== counted) found(`${known} messageIds are remembered, and the log counts ${counted}`)
  }
}
