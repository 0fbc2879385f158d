// Looks into a log, for look.test.ts: in a process of its own, since LMDB gives a process one environment for a file. Says how
// many messages there are, and on a line of input how many there are still in the same state of the log.
import { once } from 'node:events'
import { decode, openTables } from './layout.ts'
import { lookInto } from './look.ts'

const look = await lookInto(process.argv[2])
const { env, messages } = openTables(look.folder, { readOnly: true })
const transaction = env.useReadTransaction()
const count = () => [...messages.getRange({ transaction })].map(({ value }) => decode(value)).length
console.log(count())
await once(process.stdin, 'data')
console.log(count())
transaction.done()
await env.close()
await look.release().catch(error => console.log(error.message))
process.exit()
