// Refresh calls on their way to the fetcher nodes, and keys of which a value was handed over. They go to every node, not
// only to the keys' owners: gateways may disagree about which nodes exist. Then the node that has a key for another
// gateway is not the owner that this gateway sees.
import type { World } from '@keycast/service'
import { FetcherUnavailable } from '../../backbone.ts'
import { KEYS_PER_REQUEST_MAX } from '../../wire/envelope.ts'
import type { RefreshNotice, Values } from '../../wire/values-codec.ts'
import { userName } from '../../wire/viewer-key.ts'
import type { Link as LinkOf } from '../link.ts'
import { createRecentRefreshes } from './recent-refreshes.ts'

type Link = LinkOf<Values>

/** A notice for each value that is handed over would cost as much as the value. */
const TOGETHER_MS = 1_000

interface Options extends Pick<World, 'now' | 'after'> {
  /** To the nodes there are now. */
  links: () => Link[]
}

export function createRefreshes({ links, now, after }: Options) {
  /** With what gives them up. */
  const pending = new Map<PendingRefresh, (why: string) => void>()
  const recent = createRecentRefreshes<Link>({ now })

  /** Of keys that the other nodes are to be told of. */
  const takers = new Map<string, Link | undefined>()
  let stopTelling = () => {}

  function tellOthers() {
    for (const link of links()) {
      const keys = [...takers].filter(([, taker]) => taker !== link).map(([key]) => key)
      for (const chunk of chunksOf(keys)) link.notify(refreshNotice(chunk), () => {})
    }
    takers.clear()
  }

  function refresh(keys: string[], { users, deadlineMs }: { users?: string[]; deadlineMs: number }): Promise<void> {
    if (keys.length === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const giveUp = (why: string) => {
        end()
        reject(new FetcherUnavailable(why))
      }
      const stopDeadline = after(deadlineMs, () => giveUp('no fetcher node took the refresh in time'))
      const end = () => {
        stopDeadline()
        pending.delete(call)
        call.takeBack()
      }
      const call = createPendingRefresh({
        keys,
        users: users?.map(userName),
        links,
        done() {
          end()
          // Without the users: a node that missed it has all values of these keys fetched anew.
          recent.add(keys)
          resolve()
        },
      })
      pending.set(call, giveUp)
      call.route()
    })
  }

  return {
    refresh,

    /** A node was handed the key's new value, perhaps not the one that has the key for other gateways. */
    tellOthers(key: string, taker: Link | undefined) {
      if (takers.size === 0) stopTelling = after(TOGETHER_MS, tellOthers)
      takers.set(key, taker)
      recent.add([key], taker)
    },

    /** The set of nodes may have changed. */
    route() {
      for (const call of pending.keys()) call.route()
    },

    /**
     * The node was not told of recent refreshes while it was out of reach or unknown, or has forgotten them. Calls that are
     * still pending reach it by themselves.
     */
    remind(link: Link) {
      for (const keys of chunksOf(recent.keysFor(link))) link.notify(refreshNotice(keys), () => {})
    },

    stop() {
      stopTelling()
      for (const giveUp of pending.values()) giveUp('the gateway is stopping')
    },
  }
}

type PendingRefresh = ReturnType<typeof createPendingRefresh>

interface Pending {
  /** One at least. */
  keys: string[]
  users: string[] | undefined
  links: () => Link[]
  /** Called once, when each node has all keys. */
  done: () => void
}

function createPendingRefresh({ keys, users, links, done }: Pending) {
  /** The number of messages that each link must still confirm. */
  const unconfirmed = new Map<Link, number>()
  const takeBacks: (() => void)[] = []
  let isDone = false

  /** Tells the present nodes that were not told yet. */
  function route() {
    for (const link of links()) if (!unconfirmed.has(link)) ask(link)
    check()
  }

  function ask(link: Link) {
    unconfirmed.set(link, Math.ceil(keys.length / KEYS_PER_REQUEST_MAX))
    for (const chunk of chunksOf(keys)) {
      const takeBack = link.notify(refreshNotice(chunk, users), () => {
        unconfirmed.set(link, (unconfirmed.get(link) as number) - 1)
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

  /** Of nodes that were not told yet. */
  function takeBack() {
    for (const each of takeBacks) each()
  }

  return { route, takeBack }
}

/** @returns as many to each as one message may hold */
function chunksOf(keys: string[]): string[][] {
  const chunks = []
  for (let from = 0; from < keys.length; from += KEYS_PER_REQUEST_MAX) {
    chunks.push(keys.slice(from, from + KEYS_PER_REQUEST_MAX))
  }
  return chunks
}

const refreshNotice = (keys: string[], users?: string[]): RefreshNotice => ({ type: 'refresh', keys, users })
