// Runs a worker's code before the first lease comes. JavaScript runs several times slower until it is compiled, and the
// first thousand keys of a process just started would pay for that. The backend is a server in this process.
import type { AddressInfo } from 'node:net'
import { http } from '@keycast/service'
import type { Lease } from '../worker-messages.ts'
import type { Deltas } from './deltas.ts'
import type { Puller } from './pull.ts'

/** Pulls under way at one time. */
const CONCURRENCY = 16

/** A start on a machine that has much else to do is not held up for longer. */
const WARM_UP_MS_MAX = 1_000

const body = JSON.stringify({ warm: 'up', text: 'x'.repeat(1_000) })

interface Options {
  puller: Puller
  deltas: Deltas
  /** 0: none. */
  pullsMax: number
  now: () => number
}

/** @returns pulls made */
export async function warmUp({ puller, deltas, pullsMax, now }: Options): Promise<number> {
  if (pullsMax === 0) return 0
  const endsAt = now() + WARM_UP_MS_MAX
  let etags = 0
  const server = http.createServer((request, response) => {
    // Every other one is a 304, as refreshes are in the main.
    if (request.headers['if-none-match']) response.writeHead(304, { etag: '"w"' }).end()
    else response.writeHead(200, { 'content-type': 'application/json', etag: `"w${etags++}"` }).end(body)
  })
  // `exclusive`: a cluster's primary would otherwise listen, and hand connections to any of its workers.
  await new Promise(resolve => server.listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => resolve(undefined)))
  const { port } = server.address() as AddressInfo
  let pulls = 0

  async function pullSome() {
    while (pulls < pullsMax && now() < endsAt) {
      const id = pulls++
      const lease: Lease = {
        type: 'lease',
        lease: id,
        key: 'warm:up',
        url: `http://127.0.0.1:${port}/warm/${id}`,
        headers: {},
        timeoutMs: WARM_UP_MS_MAX,
        bytesMax: 10_000,
        delta: false,
        etag: id % 2 === 0 ? undefined : '"w"',
      }
      const { result, body } = await puller.pull(lease)
      if (result.kind === 'value' && body) deltas.make(lease, result, body)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, pullSome))
  server.close()
  server.closeAllConnections()
  return pulls
}
