// What a worker does: says each second how much it takes and has used, pulls what it is leased, tells how it went.

/**
 * @typedef {import('../work/messages.js').Lease} Lease
 * @typedef {import('./work-socket.js').Link} Link
 */

/**
 * @param {object} options
 * @param {(onLease: (lease: Lease) => void) => Link} options.openLink
 * @param {Pick<import('./pull.js').Puller, 'pull'>} options.puller
 * @param {import('./deltas.js').Deltas} options.deltas
 * @param {number} options.id as the primary's cluster knows this worker
 * @param {number} options.credit leases taken at one time
 * @param {number} options.beatMs
 * @param {() => import('../work/messages.js').Usage} options.usage of this process
 */
export function startWorker({ openLink, puller, deltas, id, credit, beatMs, usage }) {
  let pulling = 0
  let beating = false

  const link = openLink(lease => {
    // The primary counts a lease until it has read the result, so it can only ever count more than are here.
    if (pulling === credit) throw new Error(`lease ${lease.lease} is over the credit of ${credit}`)
    pull(lease)
  })

  /** @param {Lease} lease */
  async function pull(lease) {
    const startedAt = performance.now()
    pulling += 1
    const { outcome, body } = await puller.pull(lease)
    pulling -= 1
    const durationMs = performance.now() - startedAt
    const result = /** @type {const} */ ({ type: 'result', lease: lease.lease, durationMs })
    if (outcome.outcome !== 'value' || !body) return link.send({ ...result, ...outcome }, body)
    const { delta, skipped } = deltas.make(lease, outcome, body)
    return link.send({ ...result, ...outcome, deltaFrom: delta && lease.version, deltaSkipped: skipped }, body, delta)
  }

  async function beat() {
    // One at a time: beats to a primary that does not read would queue up without end.
    if (beating) return
    beating = true
    await link.send({ type: 'credit', worker: id, credit, ...usage() })
    beating = false
  }

  beat()
  const timer = setInterval(beat, beatMs)

  return {
    /** Leases under way end without a result. */
    stop() {
      clearInterval(timer)
      link.close()
    },
  }
}
