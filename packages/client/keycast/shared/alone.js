// A worker within the tab, where the platform forbids workers or locks, or does not load the worker's script: the tab then has
// a connection of its own.
import { connect } from '../connect.js'
import { createHost } from './host.js'

/** @returns {import('./tab.js').Reach} */
export function createAlone() {
  const held = new Set()
  /** Tab and host end together, so that nobody comes to hold what another holds. @type {import('./host.js').Locks} */
  const locks = {
    async request(name, _, task) {
      if (held.has(name)) return
      held.add(name)
      task()
    },
  }
  const host = createHost({ connect, locks, lock: 'alone' })
  return {
    locks,
    reach() {
      const { port1, port2 } = new MessageChannel()
      host.join(/** @type {any} */ (port1))
      return /** @type {any} */ (port2)
    },
  }
}
