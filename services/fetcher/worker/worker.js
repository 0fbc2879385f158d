// A worker announces its credit each second, pulls the keys it is leased, asks backends whether viewers may read, and
// sends the results.

/**
 * @typedef {import('../work/messages.js').Lease} Lease
 * @typedef {import('./work-socket.js').WorkSocket} WorkSocket
 */

/**
 * @param {object} options
 * @param {(onLease: (lease: Lease) => void) => WorkSocket} options.openWorkSocket
 * @param {Pick<import('./pull.js').Puller, 'pull'>} options.puller
 * @param {Pick<import('./ask.js').Asker, 'ask'>} options.asker
 * @param {import('./deltas.js').Deltas} options.deltas
 * @param {number} options.id as the primary's cluster knows this worker
 * @param {number} options.credit leases taken at one time
 * @param {number} options.beatMs
 * @param {() => import('../work/messages.js').Usage} options.usage of this process
 */
export function startWorker({ openWorkSocket, puller, asker, deltas, id, credit, beatMs, usage }) {
  let pulling = 0
  let beating = false

  const socket = openWorkSocket(lease => {
    // The primary counts a lease until it has read the result, so it counts more than this worker has, never fewer.
    if (pulling === credit) throw new Error(`lease ${lease.lease} is over the credit of ${credit}`)
    pull(lease)
  })

  /** @param {Lease} lease */
  async function pull(lease) {
    pulling += 1
    const { result, body } = lease.statusOf ? await ask(lease) : await puller.pull(lease)
    pulling -= 1
    const message = /** @type {const} */ ({ type: 'result', lease: lease.lease })
    if (result.kind === 'current') deltas.confirm(lease, result)
    if (result.kind !== 'value' || !body) return socket.send({ ...message, ...result }, body)
    const { delta, skipped } = deltas.make(lease, result, body)
    return socket.send({ ...message, ...result, deltaFrom: delta && lease.version, deltaSkipped: skipped }, body, delta)
  }

  /** @param {Lease} lease @returns {Promise<import('./response.js').Pulled>} */
  const ask = async lease => ({ result: await asker.ask(lease) })

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
