// An operator's tool for the journal's log: backs it up, restores it, checks it, and shows its content.
import { readSettings } from '@keycast/service'
import { settings as journal } from '../services/journal/settings.ts'
import { commands } from './journal/commands.ts'
import { readCount, runCommand } from './support/command.ts'

const usage = `Usage: keycast journal backup FILE             [--data FOLDER]
       keycast journal restore FILE            [--data FOLDER]
       keycast journal check [FILE]            [--data FOLDER]
       keycast journal show [ROOM]             [--data FOLDER] [--after SEQ] [--last N]

Works on the log that a journal keeps with JOURNAL_LOG=lmdb.

  backup   writes all of the log into a new file; the journal may run. The file is checked at the end
  restore  makes a log of such a file. No journal may run on the folder, and it must be empty or not exist yet.
           Clients are told that the history is another one: what was published since the backup is gone
  check    says whether the log, or a backup, is whole; the journal may run
  show     lists the rooms, or one room's messages; into a pipe or a file as one line of JSON each

  --data FOLDER   the log's folder; for show and check also a backup   (default: JOURNAL_DATA, ${journal.folder.default})
  --after SEQ     only messages after this one
  --last N        only the newest N of them

In containers: docker compose exec journal keycast journal show

Exits with 0 when it is done and all is well, with 1 when the log is damaged or has no such room, with 2 when it could
not run.`

const { folder } = journal

const names = Object.keys(commands)
const needsFile = new Set(['backup', 'restore'])

const countOf = (name: string, text: string | undefined) => (text === undefined ? undefined : readCount(name, text, 0))

const options = {
  data: { type: 'string' },
  after: { type: 'string' },
  last: { type: 'string' },
} as const

export const run = (args: string[]) =>
  runCommand(
    { name: 'keycast journal', usage, options, allowPositionals: true },
    ({ values, positionals }) => {
      const [name, argument, ...others] = positionals
      if (!names.includes(name) || others.length > 0) {
        throw new Error(`give one of ${names.join(', ')} (--help says more)`)
      }
      if (needsFile.has(name) && !argument) throw new Error(`${name} needs a file, as in: ${name} journal.backup`)
      if (name !== 'show' && (values.after ?? values.last) !== undefined)
        throw new Error('--after and --last are of show')
      const data =
        values.data ?? readSettings({ folder }, { name: 'keycast journal', about: usage, env: process.env }).folder
      return commands[name as keyof typeof commands](argument, {
        data,
        after: countOf('after', values.after),
        last: countOf('last', values.last),
        output: {
          print: line => console.log(line),
          complain: line => console.error(`journal: ${line}`),
          forPerson: Boolean(process.stdout.isTTY),
        },
      })
    },
    args,
  )
