// The clients of one generator process: opened at given times, spread over the system's URLs and over loopback
// addresses.
import { setImmediate } from 'node:timers/promises'
import { createClient } from './client.ts'
import { nowUs } from './clock.ts'
import { createTokenMaker } from './tokens.ts'

/**
 * To find a free port of an address the kernel looks at those that are taken: with 15,000 clients an address 200 of them
 * connected in a second, with 2,000 a thousand.
 */
const CLIENTS_PER_ADDRESS = 2_000

/** More handshakes at a time would wait in the listener's queue (4,096 at most) and distort the ramp. */
const CONNECTING_MAX = 256

const CLOSED_AT_ONCE = 500

/** Clients with tokens come from so many addresses, as users do: gateways bound the tokens that they check at a time by address. */
const USERS_ADDRESSES = 50

/**
 * @typedef {object} ClientsSettings
 * @property {string[]} urls
 * @property {number} clientsMax of all processes together: how many source addresses are needed follows from it
 * @property {string} [subprotocol]
 * @property {import('./tokens.ts').Signing} [signing] the signing key, if each client brings a token
 * @property {string} [from] the address all come from, on a system of this host
 * @property {number} index of this process
 * @property {number} processes
 *
 * A workload's handling of one client.
 * @typedef {object} Behaviour
 * @property {number} headBytesMax how much of each message it reads
 * @property {boolean} [readsInPlace] its clients look at messages before they are copied
 * @property {() => boolean} [wantsWhole] whether the message that now begins is to be handed on whole
 * @property {number} [redialMs] a client whose connection was dropped dials the next URL, at random within so long, until
 *   it is let in; its `open` is called again, with the same number
 * @property {(client: import('./client.ts').Client, number: number, dialledUs: number) => ClientBehaviour} open a client
 *   has connected; `number` is unique in the run
 *
 * @typedef {object} ClientBehaviour
 * @property {import('./frames.ts').FrameEvents['onMessage']} onMessage
 * @property {import('./frames.ts').FrameEvents['onWhole']} [onWhole] of a behaviour that `readsInPlace`
 * @property {() => void} onEnd whoever ended it
 *
 * @typedef {ReturnType<typeof createClients>} Clients
 */

/** The counts of {@link createClients}. */
export const clientCounts = /** @type {const} */ (['opened', 'refused', 'dropped', 'closed', 'bytesIn'])

/**
 * @param {ClientsSettings & { behaviour: Behaviour, tally: import('./tally.ts').Tally }} options
 */
export function createClients({ urls, clientsMax, subprotocol, signing, from, index, processes, behaviour, tally }) {
  const targets = urls.map(url => new URL(url))
  /** @type {Set<import('./client.ts').Client>} */
  const clients = new Set()
  // All before the first client connects: signing would slow the ramp down.
  const make = signing && createTokenMaker(signing)
  const tokens =
    make && Array.from({ length: Math.ceil(clientsMax / processes) }, (_, n) => make(index + n * processes))
  let connecting = 0
  let open = 0
  let number = index
  let isOver = false
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  const add = () => {
    dial(number)
    number += processes
  }

  /** @param {number} mine the client's number @param {number} [drops] how often it has been let in and dropped, or refused since */
  const dial = (mine, drops = 0) => {
    connecting += 1
    const dialledUs = nowUs()
    /** @type {ClientBehaviour | undefined} */
    let behaves
    const url = targets[(mine + drops) % targets.length]
    const client = createClient({
      url,
      localAddress: from ?? sourceAddress(url, mine, clientsMax, signing !== undefined),
      subprotocol,
      token: tokens?.[(mine - index) / processes],
      headBytesMax: behaviour.headBytesMax,
      wantsWhole: behaviour.wantsWhole,
      onOpen() {
        connecting -= 1
        open += 1
        tally.counts.opened += 1
        behaves = behaviour.open(client, mine, dialledUs)
      },
      onMessage: (head, bytes, opcode, whole) => behaves?.onMessage(head, bytes, opcode, whole),
      onWhole: behaviour.readsInPlace ? (from, at, end) => behaves?.onWhole?.(from, at, end) === true : undefined,
      onEnd({ how, reason }) {
        clients.delete(client)
        if (behaves === undefined) connecting -= 1
        else open -= 1
        // One that we gave up before it opened counts nowhere: opened = open now + dropped + closed.
        if (behaves !== undefined || how === 'refused') tally.counts[how] += 1
        if (how !== 'closed') tally.because(`${how}: ${reason}`)
        behaves?.onEnd()
        const wasLetIn = behaves !== undefined || drops > 0
        if (behaviour.redialMs === undefined || how === 'closed' || !wasLetIn) return
        setTimeout(() => isOver || dial(mine, drops + 1), Math.random() * behaviour.redialMs)
      },
    })
    clients.add(client)
  }

  return {
    open: () => open,
    connecting: () => connecting,

    /**
     * Opens clients one after the other, this process every `processes`-th of them, until `count` are opened by all.
     *
     * @param {{ fromUs: number, everyUs: number, count: number }} ramp
     */
    ramp({ fromUs, everyUs, count }) {
      clearInterval(timer)
      const first = number
      timer = setInterval(() => {
        while (number < count && fromUs + (number - first + index) * everyUs <= nowUs() && connecting < CONNECTING_MAX)
          add()
        if (number >= count) clearInterval(timer)
      }, 1)
    },

    /** Opens no more. */
    hold: () => clearInterval(timer),

    /** In portions: closing thousands at once would block the event loop for seconds. */
    async closeAll() {
      clearInterval(timer)
      isOver = true
      const closing = [...clients]
      for (let at = 0; at < closing.length; at += CLOSED_AT_ONCE) {
        for (const client of closing.slice(at, at + CLOSED_AT_ONCE)) client.close()
        await setImmediate()
      }
    },
  }
}

/**
 * The address a client comes from: another one of 127.0.0.0/8 for each 2,000 clients; undefined: as the kernel likes.
 *
 * @param {URL} url
 * @param {number} number
 * @param {number} clientsMax
 * @param {boolean} [areUsers] each brings a token
 */
export function sourceAddress(url, number, clientsMax, areUsers = false) {
  if (!isLoopback(url.hostname) || !url.hostname.startsWith('127.')) return undefined
  if (areUsers) return `127.0.1.${1 + (number % USERS_ADDRESSES)}`
  if (clientsMax <= CLIENTS_PER_ADDRESS) return undefined
  return `127.0.0.${2 + Math.floor(number / CLIENTS_PER_ADDRESS)}`
}

/** @param {string} hostname */
export const isLoopback = hostname =>
  hostname === 'localhost' || /^127(\.\d{1,3}){3}$/.test(hostname) || hostname === '[::1]'
