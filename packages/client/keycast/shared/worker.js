// The shared worker itself: a browser runs one for all pages of an origin that name the same user and gateway.
import { connect } from '../connect.js'
import { randomText } from '../random.js'
import { createHost } from './host.js'

const world = /** @type {any} */ (globalThis)
const host = createHost({ connect, locks: world.navigator.locks, lock: `keycast worker ${randomText()}` })
world.addEventListener('connect', (/** @type {any} */ { ports: [port] }) => host.join(port))
