// A worker announces its credit each second, pulls the keys it is leased, asks backends whether viewers may read, and
// sends the results.
import { namespaceOf } from '@keycast/protocol'
import { createOnceAMinute } from '@keycast/service'

/**
 * @typedef {import('../work/messages.ts').Lease} Lease
 * @typedef {import('../work/messages.ts').Result} Result
 * @typedef {import('./work-socket.ts').WorkSocket} WorkSocket
 */

/**
 * @param {object} options
 * @param {(onLease: (lease: Lease) => void) => WorkSocket} options.openWorkSocket
 * @param {Pick<import('./pull.ts').Puller, 'pull'>} options.puller
 * @param {Pick<import('./ask.ts').Asker, 'ask'>} options.asker
 * @param {import('./deltas.ts').Deltas} options.deltas
 * @param {number} options.id as the primary's cluster knows this worker
 * @param {number} options.credit leases taken at one time
 * @param {number} options.beatMs
 * @param {() => import('../work/messages.ts').Usage} options.usage of this process
 * @param {Pick<import('@keycast/service').Log, 'error'>} options.log
 */
export function startWorker({ openWorkSocket, puller, asker, deltas, id, credit, beatMs, usage, log }) {
  let pulling = 0
  let beating = false
  const isLogDue = createOnceAMinute(() => performance.now())

  const socket = openWorkSocket(lease => {
    // The primary counts a lease until it has read the result, so it counts more than this worker has, never fewer.
    if (pulling === credit) throw new Error(`lease ${lease.lease} is over the credit of ${credit}`)
    pull(lease)
  })

  /** @param {Lease} lease */
  async function pull(lease) {
    pulling += 1
    const { result, body, delta } = await resultOf(lease).catch(error => failed(lease, error))
    pulling -= 1
    await socket.send({ type: 'result', lease: lease.lease, ...result }, body, delta)
  }

  /** @param {Lease} lease @returns {Promise<{ result: Result, body?: Buffer, delta?: Buffer }>} */
  async function resultOf(lease) {
    if (lease.statusOf) return { result: await asker.ask(lease) }
    const { result, body } = await puller.pull(lease)
    if (result.kind === 'current') deltas.confirm(lease, result)
    if (result.kind !== 'value' || !body) return { result }
    const { delta, skipped } = deltas.make(lease, result, body)
    return { result: { ...result, deltaFrom: delta && lease.version, deltaSkipped: skipped }, body, delta }
  }

  /**
   * A response that breaks the code here costs its own fetch alone. If it ended this worker, all other leases would be lost
   * with it, and then the next worker's, which gets the same key.
   *
   * @param {Lease} lease
   * @param {unknown} error a programmer's
   * @returns {{ result: Result, body?: undefined, delta?: undefined }}
   */
  function failed({ key }, error) {
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
  const timer = setInterval(beat, beatMs)

  return {
    /** Leases under way end without a result. */
    stop() {
      clearInterval(timer)
      socket.close()
    },
  }
}
