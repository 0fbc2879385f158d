// A refresh call on its way to the fetcher nodes. It goes to every node, not only to the keys' owners: gateways may
// disagree about which nodes exist. Then the node that refreshes a key for another gateway is not the owner that this
// gateway sees.
import { KEYS_PER_REQUEST_MAX } from '../../wire/envelope.ts'

/**
 * @typedef {import('../../wire/values-codec.ts').RefreshNotice} RefreshNotice
 * @typedef {import('../link.ts').Link<import('../../wire/values-codec.ts').Values>} Link
 *
 * @typedef {object} PendingRefresh
 * @property {() => void} route tells the present nodes that were not told yet
 * @property {() => void} takeBack of nodes that were not told yet
 * @property {(error: Error) => void} fail
 *
 * @param {object} options
 * @param {string[]} options.keys one at least
 * @param {() => Link[]} options.links to the nodes there are now
 * @param {() => void} options.done called once, when each of them has all keys
 * @param {(error: Error) => void} options.fail
 * @returns {PendingRefresh}
 */
export function createPendingRefresh({ keys, links, done, fail }) {
  /** The number of messages that each link must still confirm. @type {Map<Link, number>} */
  const unconfirmed = new Map()
  /** @type {(() => void)[]} */
  const takeBacks = []
  let isDone = false

  function route() {
    for (const link of links()) if (!unconfirmed.has(link)) ask(link)
    check()
  }

  /** @param {Link} link */
  function ask(link) {
    unconfirmed.set(link, Math.ceil(keys.length / KEYS_PER_REQUEST_MAX))
    for (const chunk of chunksOf(keys)) {
      const takeBack = link.notify(refreshNotice(chunk), () => {
        unconfirmed.set(link, /** @type {number} */ (unconfirmed.get(link)) - 1)
        check()
      })
      takeBacks.push(takeBack)
    }
  }

  function check() {
    const asked = links()
    if (isDone || asked.length === 0 || asked.some(link => unconfirmed.get(link) !== 0)) return
    isDone = true
    done()
  }

  function takeBack() {
    for (const each of takeBacks) each()
  }

  return { route, takeBack, fail }
}

/** @param {string[]} keys @returns {string[][]} as many to each as one message may hold */
export function chunksOf(keys) {
  const chunks = []
  for (let from = 0; from < keys.length; from += KEYS_PER_REQUEST_MAX) {
    chunks.push(keys.slice(from, from + KEYS_PER_REQUEST_MAX))
  }
  return chunks
}

/** @param {string[]} keys @returns {RefreshNotice} */
export const refreshNotice = keys => ({ type: 'refresh', keys })
