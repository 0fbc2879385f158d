// A refresh call on its way to the fetcher nodes. It goes to every node, not only to the keys' owners: gateways may
// disagree about which nodes exist. Then the node that refreshes a key for another gateway is not the owner that this
// gateway sees.
import { KEYS_PER_REQUEST_MAX } from '../../wire/envelope.ts'
import type { RefreshNotice, Values } from '../../wire/values-codec.ts'
import type { Link as LinkOf } from '../link.ts'

interface Options {
  /** One at least. */
  keys: string[]
  users: string[] | undefined
  /** To the nodes there are now. */
  links: () => Link[]
  /** Called once, when each of them has all keys. */
  done: () => void
  fail: (error: Error) => void
}

type Link = LinkOf<Values>

export interface PendingRefresh {
  /** Tells the present nodes that were not told yet. */
  route: () => void
  /** Of nodes that were not told yet. */
  takeBack: () => void
  fail: (error: Error) => void
}

export function createPendingRefresh({ keys, users, links, done, fail }: Options): PendingRefresh {
  /** The number of messages that each link must still confirm. */
  const unconfirmed = new Map<Link, number>()
  const takeBacks: (() => void)[] = []
  let isDone = false

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

  function takeBack() {
    for (const each of takeBacks) each()
  }

  return { route, takeBack, fail }
}

/** @returns as many to each as one message may hold */
export function chunksOf(keys: string[]): string[][] {
  const chunks = []
  for (let from = 0; from < keys.length; from += KEYS_PER_REQUEST_MAX) {
    chunks.push(keys.slice(from, from + KEYS_PER_REQUEST_MAX))
  }
  return chunks
}

export const refreshNotice = (keys: string[], users?: string[]): RefreshNotice => ({ type: 'refresh', keys, users })
