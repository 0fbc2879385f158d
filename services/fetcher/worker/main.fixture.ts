// A primary and its one worker, for main.test.ts. The argument is the endpoint. Commands come on stdin, a lease with
// changes as JSON; what is seen goes to stdout as lines of JSON.
import cluster from 'node:cluster'
import { createInterface } from 'node:readline'
import { Router } from 'zeromq'
import {
  decodeFromWorker,
  encodeWork,
  type Lease,
  WORK_CREDIT_VARIABLE,
  WORK_ENDPOINT_VARIABLE,
} from '../worker-messages.ts'
import { runWorker } from './main.ts'

/** Nobody listens there: the result comes at once. */
const lease: Lease = {
  type: 'lease',
  lease: 1,
  key: 'conversation:1',
  url: 'http://127.0.0.1:1/conversations/1',
  headers: { authorization: 'Bearer secret' },
  timeoutMs: 1_000,
  bytesMax: 1_000,
  delta: false,
}

if (cluster.isPrimary) await runPrimary()
else runWorker()

async function runPrimary() {
  const endpoint = process.argv[2]
  const router = new Router({ linger: 0 })
  await router.bind(endpoint)

  cluster.setupPrimary({ args: [] })
  const worker = cluster.fork({ [WORK_ENDPOINT_VARIABLE]: endpoint, [WORK_CREDIT_VARIABLE]: '600' })
  worker.on('exit', (code, signal) => {
    print({ event: 'exit', code, signal })
    process.exit()
  })

  let routingId: Buffer
  createInterface({ input: process.stdin }).on('line', line => {
    const [command, changes = '{}'] = line.split(' ')
    const message = { ...lease, ...JSON.parse(changes) }
    if (command === 'lease') router.send([routingId, ...encodeWork([{ message }])])
    if (command === 'disconnect') worker.disconnect()
    if (command === 'garbage') router.send([routingId, 'garbage'])
  })

  for await (const [id, ...parts] of router) {
    routingId = id
    for (const { message } of decodeFromWorker(parts)) print({ event: message.type, pid: worker.process.pid, message })
  }
}

function print(seen: object) {
  process.stdout.write(`${JSON.stringify(seen)}\n`)
}
