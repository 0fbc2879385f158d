// A log on a disk that fails, for faults.test.ts. In a process of its own, under disk-faults.fixture.c. The arguments
// are a folder and the fault.
import { writeFileSync } from 'node:fs'
import { realWorld } from '@keycast/service'
import { openLmdbLog } from './lmdb.ts'

const [, , folder, fault] = process.argv
const bytesMax = 2 ** 30
const retention = { messages: 1e6, ageMs: 1e12, bytes: 1e12 }
const publishOf = (room: string) => ({
  room,
  messageId: undefined,
  from: '',
  data: Buffer.from('1'),
  retention,
})

const log = await openLmdbLog({ ...realWorld, folder, bytesMax })
await log.append([publishOf('room:1')])
writeFileSync(String(process.env.DISK_FAULT), fault)
const outcome = await log.append([publishOf('room:1'), publishOf('room:2')]).then(
  outcomes => JSON.stringify(outcomes),
  error => error.name,
)
console.log(`next: ${outcome}`)
// A log that is broken may refuse to be read as well.
const heads = await Promise.all([log.head('room:1'), log.head('room:2')]).catch(() => [])
for (const { seq } of heads) if (seq > 1) console.log(`seen: ${seq}`)
process.exit()
