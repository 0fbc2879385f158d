// A worker's socket to its primary; work/messages.ts shows what it carries.
import { createWriter, receive } from '@keycast/backbone'
import { Dealer } from 'zeromq'
import { batchPerTurn } from '../work/batch-per-turn.ts'
import { decodeLeases, encodeWork } from '../work/messages.ts'

/** A lease is a URL, its namespace's headers and two validators: some kilobytes at most; and there may be several. */
const LEASES_BYTES_MAX = 2 ** 22

/**
 * @typedef {object} WorkSocket
 * @property {(message: import('../work/messages.ts').Credit | import('../work/messages.ts').ResultMessage, body?:
 *   Buffer, delta?: Buffer) => Promise<void>} send
 *   resolves once the socket has taken it; the credit given bounds what is queued until then
 * @property {() => void} close messages that the primary has not read are lost
 *
 * @typedef {import('../work/messages.ts').Loaded<import('../work/messages.ts').Credit |
 *   import('../work/messages.ts').ResultMessage> & { taken: () => void }} Sending
 */

/**
 * @param {object} options
 * @param {string} options.endpoint
 * @param {(lease: import('../work/messages.ts').Lease) => void} options.onLease must return soon: the next lease waits
 *   for it. An error that it throws breaks the socket
 * @param {(error: Error) => void} options.onBroken the socket cannot be used any more
 * @returns {WorkSocket}
 */
export function openWorkSocket({ endpoint, onLease, onBroken }) {
  // No routing id: a reused one can stay deaf for ever. Linger 0: a primary that ends a worker reads nothing more.
  const dealer = new Dealer({ linger: 0, maxMessageSize: LEASES_BYTES_MAX })
  let closed = false
  dealer.connect(endpoint)
  const writer = createWriter(dealer)
  const batch = batchPerTurn((/** @type {Sending[]} */ sendings) => {
    if (closed) return
    writer.write(encodeWork(sendings), error => {
      if (error) broken(error)
      for (const { taken } of sendings) taken()
    })
  })

  /** @param {Error} error */
  const broken = error => {
    if (!closed) onBroken(error)
  }
  receive(dealer, parts => {
    for (const lease of decodeLeases(parts)) onLease(lease)
  }).catch(broken)

  return {
    send: (message, body, delta) =>
      new Promise(taken => {
        batch.add({ message, body, delta, taken }, undefined)
      }),

    close() {
      closed = true
      dealer.close()
    },
  }
}
