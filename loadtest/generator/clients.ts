// The clients of one generator process: opened at given times, spread over the system's URLs and over loopback
// addresses.
import { setImmediate } from 'node:timers/promises'
import { type Client, createClient } from './client.ts'
import { nowUs } from './clock.ts'
import type { FrameEvents } from './frames.ts'
import type { Tally } from './tally.ts'
import { createTokenMaker, type Signing } from './tokens.ts'

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

export interface ClientsSettings {
  urls: string[]
  /** Of all processes together: how many source addresses are needed follows from it. */
  clientsMax: number
  subprotocol?: string
  /** The signing key, if each client brings a token. */
  signing?: Signing
  /** Of all of them; each is a user of its own unless given. */
  user?: string
  /** The address all come from, on a system of this host. */
  from?: string
  /** Of this process. */
  index: number
  processes: number
}

/** A workload's handling of one client. */
export interface Behaviour {
  /** How much of each message it reads. */
  headBytesMax: number
  /** Its clients look at messages before they are copied. */
  readsInPlace?: boolean
  /** Whether the message that now begins is to be handed on whole. */
  wantsWhole?: () => boolean
  /**
   * A client whose connection was dropped dials the next URL, at random within so long, until it is let in; its `open`
   * is called again, with the same number.
   */
  redialMs?: number
  /** A client has connected; `number` is unique in the run. */
  open: (client: Client, number: number, dialledUs: number) => ClientBehaviour
}

export interface ClientBehaviour {
  onMessage: FrameEvents['onMessage']
  /** Of a behaviour that `readsInPlace`. */
  onWhole?: FrameEvents['onWhole']
  /** Whoever ended it. */
  onEnd: () => void
}

export type Clients = ReturnType<typeof createClients>

/** The counts of {@link createClients}. */
export const clientCounts = ['opened', 'refused', 'dropped', 'closed', 'bytesIn'] as const

export function createClients({
  urls,
  clientsMax,
  subprotocol,
  signing,
  user,
  from,
  index,
  processes,
  behaviour,
  tally,
}: ClientsSettings & { behaviour: Behaviour; tally: Tally }) {
  const targets = urls.map(url => new URL(url))
  const clients = new Set<Client>()
  // All before the first client connects: signing would slow the ramp down.
  const make = signing && createTokenMaker(signing, user)
  const tokens =
    make && Array.from({ length: Math.ceil(clientsMax / processes) }, (_, n) => make(index + n * processes))
  let connecting = 0
  let open = 0
  let number = index
  let isOver = false
  let timer: NodeJS.Timeout | undefined

  const add = () => {
    dial(number)
    number += processes
  }

  /** @param mine the client's number @param drops how often it has been let in and dropped, or refused since */
  const dial = (mine: number, drops = 0) => {
    connecting += 1
    const dialledUs = nowUs()
    let behaves: ClientBehaviour | undefined
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
     */
    ramp({ fromUs, everyUs, count }: { fromUs: number; everyUs: number; count: number }) {
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
 * @param areUsers each brings a token
 */
export function sourceAddress(url: URL, number: number, clientsMax: number, areUsers = false) {
  if (!isLoopback(url.hostname) || !url.hostname.startsWith('127.')) return undefined
  if (areUsers) return `127.0.1.${1 + (number % USERS_ADDRESSES)}`
  if (clientsMax <= CLIENTS_PER_ADDRESS) return undefined
  return `127.0.0.${2 + Math.floor(number / CLIENTS_PER_ADDRESS)}`
}

export const isLoopback = (hostname: string) =>
  hostname === 'localhost' || /^127(\.\d{1,3}){3}$/.test(hostname) || hostname === '[::1]'
