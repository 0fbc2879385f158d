import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Log } from '../gateway/link.ts'
import { bindZeromq } from './bind.ts'

const log: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** Longer than what is usual for heartbeats: 2 s until one is sent, and 6 s to wait for its answer. */
const STANDSTILL_MS = 9_000

/** More than fit into a PULL socket's queue and what TCP takes on top. */
const REQUESTS = 2_000

/** A process of its own, which goes on while this one stands still. */
const startSender = (port: number) =>
  spawn(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { Push } from 'zeromq'
       const push = new Push({ linger: 0 })
       push.connect('tcp://127.0.0.1:${port}')
       const part = Buffer.alloc(20_000)
       for (let number = 0; number < ${REQUESTS}; number++) {
         part.writeUInt32LE(number)
         await push.send(Buffer.from(part))
       }
       // Until this process is killed: a socket that nobody holds is closed, and its queue is lost.
       process.stdin.resume().on('end', () => push.close())`,
    ],
    { cwd: import.meta.dirname, stdio: ['pipe', 'inherit', 'inherit'] },
  )

test('a node that is seconds behind with thousands of requests gets them all, in order', async () => {
  const numbers: number[] = []
  const { promise: all, resolve: onAll } = withResolvers()
  const { promise: port, resolve: onBound } = withResolvers()
  const bound = await bindZeromq(
    { requests: 'tcp://127.0.0.1:0', answers: 'tcp://127.0.0.1:0' },
    { log, now: () => 0, bound: ({ requestsPort }) => onBound(requestsPort) },
  )({
    request([part]) {
      numbers.push(part.readUInt32LE(0))
      if (numbers.length === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STANDSTILL_MS)
      if (part.readUInt32LE(0) === REQUESTS - 1) onAll(undefined)
    },
    beat() {},
  })
  const sender = startSender(await port)
  await all
  sender.kill()
  await once(sender, 'exit')
  await bound.close()
  expect(numbers).toEqual(Array.from({ length: REQUESTS }, (_, number) => number))
}, 20_000)

/** `Promise.withResolvers` is newer than Node 20. */
function withResolvers(): { promise: Promise<any>; resolve: (value: any) => void } {
  let resolve = (_: any) => {}
  const promise = new Promise(done => {
    resolve = done
  })
  return { promise, resolve }
}
