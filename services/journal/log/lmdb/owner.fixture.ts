// A process that keeps logs, for owner.test.ts. Told { folder } it opens the log and publishes into it, one message
// after the other, until told { stop } or refused. Then it says what became of it: { refused, acknowledged }.
import { realWorld } from '@keycast/service'
import { openLmdbLog } from './lmdb.ts'

const retention = { messages: 1e6, ageMs: 1e12, bytes: 1e12 }
let isStopped = false
let number = 0

async function publishInto(folder: string) {
  isStopped = false
  const acknowledged: [seq: number, text: string][] = []
  let refused = ''
  try {
    const log = await openLmdbLog({ ...realWorld, folder, bytesMax: 2 ** 30 })
    for (let count = 0; !isStopped; count++) {
      const text = `${process.pid} ${++number}`
      const data = Buffer.from(JSON.stringify(text))
      const [outcome] = await log.append([{ room: 'room:1', messageId: undefined, from: '', data, retention }])
      if (outcome.error === undefined) acknowledged.push([outcome.position.seq, text])
      if (count === 0) process.send?.({ isPublishing: true })
    }
    await log.close()
  } catch (error) {
    refused = (error as Error).constructor.name
  }
  process.send?.({ refused, acknowledged })
}

process.on('message', ({ folder, stop }: any) => {
  if (stop) isStopped = true
  else publishInto(folder)
})
