// A log on a disk that fills up, for full.test.ts. In a process of its own: the lmdb package prints the error of
// each failed commit whenever it likes. The argument is a folder with 3 MB of room; stdout is the result as JSON.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { realWorld } from '@keycast/service'
import { openLmdbLog } from './lmdb.ts'

const unhandled: string[] = []
process.on('unhandledRejection', reason => void unhandled.push(String(reason)))

const [, , folder] = process.argv
const ballast = join(folder, 'ballast')
writeFileSync(ballast, Buffer.alloc(2_000_000))
let aheadMs = 0
const wallNow = () => Date.now() + aheadMs
const open = () => openLmdbLog({ ...realWorld, wallNow, folder: join(folder, 'log'), bytesMax: 2 ** 30 })
let log = await open()
const batch = Array.from({ length: 4 }, () => ({
  room: 'room:1',
  messageId: undefined,
  from: 'ann',
  data: Buffer.alloc(40_000, 'x'),
  retention: { messages: 1e6, ageMs: 1e12, bytes: 1e12 },
  payer: 'a1.u1',
}))

let kept = 0
let full = await log.append(batch)
for (; !full[0].error; full = await log.append(batch)) kept += batch.length
const { bytes: bytesBefore, charged: chargedBefore } = log.stats()
const fullAgain = await log.append(batch)
const { bytes: bytesAfter, charged: chargedAfter } = log.stats()
const { seq } = await log.head('room:1')
await log.close()
log = await open()
const reopened = {
  read: (await log.head('room:1')).seq,
  full: await log.append(batch),
  expired: (await log.expire()).trimmed,
}

rmSync(ballast)
const healed = await log.append(batch)
const { messages } = await log.read('room:1', { after: 0, limit: 1_000, bytesMax: 1e9 })

const small = {
  ...batch[0],
  room: 'room:2',
  data: Buffer.from('1'),
  retention: { ...batch[0].retention, ageMs: 1_000 },
}
for (let n = 0; n < 30; n++) await log.append(Array(20).fill(small))
const { seq: smallOnes } = await log.head('room:2')
aheadMs = 60_000
for (let call = 0; call < 30; call++) await log.expire()
const { oldest } = await log.head('room:2')
await log.close()
const seqs = messages.map(message => message.seq)
console.log(
  JSON.stringify({
    kept,
    full,
    fullAgain,
    bytesBefore,
    bytesAfter,
    chargedBefore,
    chargedAfter,
    seq,
    reopened,
    healed,
    seqs,
    smallOnes,
    oldest,
    unhandled,
  }),
)
