// A worker announces its credit each second, pulls the keys it is leased, asks backends whether viewers may read or
// publish, and sends the results.
import { namespaceOf } from '@keycast/protocol'
import { createOnceAMinute, type Log, type World } from '@keycast/service'
import type { Lease, Result, Usage } from '../worker-messages.ts'
import type { Asker } from './ask.ts'
import type { Deltas } from './deltas.ts'
import type { Puller } from './pull.ts'
import type { Pulled } from './response.ts'
import type { WorkSocket } from './work-socket.ts'

interface Options extends World {
  openWorkSocket: (onLease: (lease: Lease, body?: Buffer) => void) => WorkSocket
  puller: Puller
  asker: Asker
  deltas: Deltas
  /** As the primary's cluster knows this worker. */
  id: number
  /** Leases taken at one time. */
  credit: number
  beatMs: number
  /** Of this process. */
  usage: () => Usage
  log: Pick<Log, 'error'>
}

/** What whoever gets the result holds. */
type Held = Pick<Lease, 'key' | 'version' | 'delta'>

const noToken: Result = {
  kind: 'failed',
  code: 'backend_refused',
  message: 'the fetcher has no token for the backend yet',
}

export function startWorker({
  openWorkSocket,
  puller,
  asker,
  deltas,
  id,
  credit,
  beatMs,
  usage,
  log,
  ...world
}: Options) {
  let pulling = 0
  let beating = false
  const isLogDue = createOnceAMinute(world.now)

  const socket = openWorkSocket((lease, body) => {
    // The primary counts a lease until it has read the result, so it counts more than this worker has, never fewer.
    if (pulling === credit) throw new Error(`lease ${lease.lease} is over the credit of ${credit}`)
    pull(lease, body)
  })

  async function pull(lease: Lease, body: Buffer | undefined) {
    pulling += 1
    const pulled = await resultOf(lease, body).catch(error => failed(lease, error))
    pulling -= 1
    const keys = lease.batch?.keys
    // The first key's comes last: it ends the lease.
    const { askedAt } = pulled
    pulled.others?.forEach((other, index) => {
      void send(lease, keys?.[index + 1] ?? lease, { ...other, askedAt }, index + 1)
    })
    await send(lease, keys?.[0] ?? lease, pulled)
  }

  function send(lease: Lease, held: Held, pulled: Pulled, nth?: number) {
    let sent: Pulled & { delta?: Buffer }
    try {
      sent = withDelta(held, pulled)
    } catch (error) {
      sent = failed(lease, error)
    }
    const { askedAt } = pulled
    return socket.send({ type: 'result', lease: lease.lease, nth, askedAt, ...sent.result }, sent.body, sent.delta)
  }

  async function resultOf(lease: Lease, body: Buffer | undefined): Promise<Pulled> {
    if (lease.statusOf) return asker.ask(lease, body)
    if (lease.lacksToken) return { result: noToken }
    return puller.pull(lease, body)
  }

  function withDelta(held: Held, { result, body }: Pulled) {
    if (result.kind === 'current') deltas.confirm(held, result)
    if (result.kind !== 'value' || !body) return { result, body }
    const { delta, skipped } = deltas.make(held, result, body)
    return { result: { ...result, deltaFrom: delta && held.version, deltaSkipped: skipped }, body, delta }
  }

  /**
   * A response that breaks the code here costs its own fetch alone. If it ended this worker, all other leases would be lost
   * with it, and then the next worker's, which gets the same key.
   *
   * @param error a programmer's
   */
  function failed({ key }: Lease, error: unknown): Pulled {
    if (isLogDue(String(error))) log.error({ err: error, namespace: namespaceOf(key) }, 'a response could not be read')
    return { result: { kind: 'failed', code: 'invalid_content', message: "the backend's response could not be read" } }
  }

  async function beat() {
    // One at a time: beats to a primary that does not read would queue up without bound.
    if (beating) return
    beating = true
    await socket.send({ type: 'credit', worker: id, credit, ...usage() })
    beating = false
  }

  beat()
  const stopBeating = world.every(beatMs, beat)

  return {
    /** Leases under way end without a result. */
    stop() {
      stopBeating()
      socket.close()
    },
  }
}
