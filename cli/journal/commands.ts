// The commands of keycast journal: each does its work on a log, reports the result, and gives the exit code.
import { resolve } from 'node:path'
import type { Report } from '../../services/journal/log/lmdb/check.ts'
import { checkLog } from '../../services/journal/log/lmdb/check-apart.ts'
import { backUp, restore as restoreLog } from '../../services/journal/log/lmdb/copy.ts'
import { checkLogFile } from '../../services/journal/log/lmdb/folder.ts'
import { openTables } from '../../services/journal/log/lmdb/layout.ts'
import { lookInto } from '../../services/journal/log/lmdb/look.ts'
import { roomLines, roomsLines } from './show.ts'

/** `forPerson`: the output is read by a person, not by a program. */
interface Output {
  print: (line: string) => void
  complain: (line: string) => void
  forPerson: boolean
}

/** @param options `data`: the log's folder */
async function backup(file: string, { data, output }: { data: string; output: Output }) {
  await backUp(data, file)
  return conclude(file, await checkLog(file), output)
}

async function restore(file: string, { data, output }: { data: string; output: Output }) {
  if (conclude(file, await checkLog(file), output) !== 0) return 1
  await restoreLog(file, data)
  output.print(`${resolve(data)}: restored. The journal begins another epoch: clients are told of the gap`)
  return 0
}

/** @param file the log in `data` unless given */
async function check(file: string | undefined, { data, output }: { data: string; output: Output }) {
  return conclude(file ?? data, await checkLog(file ?? data), output)
}

/** @param room all rooms unless given */
async function show(
  room: string | undefined,
  { data, output, after = 0, last }: { data: string; output: Output; after?: number; last?: number },
) {
  checkLogFile(data)
  const { folder, release } = await lookInto(data)
  const tables = openTables(folder, { readOnly: true })
  const { forPerson } = output
  try {
    const lines =
      room === undefined ? roomsLines(tables, forPerson) : roomLines(tables, room, { after, last, forPerson })
    for (const line of lines ?? []) output.print(line)
    if (lines) return 0
    output.complain(`${data} has no room ${room}`)
    return 1
  } finally {
    await tables.env.close()
    await release()
  }
}

function conclude(
  path: string,
  { rooms, messages, bytes, problems, more }: Report,
  { print, complain }: Output,
): 0 | 1 {
  if (problems.length === 0) {
    print(`${path}: whole, ${rooms} rooms, ${messages} messages, ${(bytes / 1e6).toFixed(1)} MB`)
    return 0
  }
  for (const problem of problems) complain(`${path}: ${problem}`)
  if (more > 0) complain(`${path}: and ${more} more`)
  complain(`${path}: damaged. A journal that starts with it may fail, or lack messages: restore a backup`)
  return 1
}

export const commands = Object.freeze({ backup, check, restore, show })
