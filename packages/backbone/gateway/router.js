// The gateway's backbone over one link per fetcher node: asks each key of its owner, and of another when that one dies.
import { FetcherUnavailable } from '../backbone.js'
import { createLink } from './link.js'
import { chunksOf, createPendingRefresh } from './pending-refresh.js'
import { createRecentRefreshes } from './recent-refreshes.js'
import { ownersAmong } from './rendezvous.js'

/**
 * @typedef {import('../backbone.js').Backbone} Backbone
 * @typedef {import('../backbone.js').BackboneEvents} BackboneEvents
 * @typedef {import('./link.js').Link} Link
 * @typedef {import('./pending-refresh.js').PendingRefresh} PendingRefresh
 *
 * Where nodes come from: calls `found` with the names of all nodes there are, now and whenever they change.
 * @typedef {{ start: (found: (names: string[]) => void) => Promise<void>, stop: () => void }} NodeSource
 *
 * `judged`: the node has spoken, or was silent for long enough to be called dead. Until then it counts as alive, so
 * that a gateway that starts does not ask all keys of whichever node answers first.
 * @typedef {{ link: Link, judged: boolean, listed: boolean }} Node
 */

/**
 * @param {object} options
 * @param {NodeSource} options.nodeSource
 * @param {(name: string) => import('./link.js').Dial} options.dialOf
 * @param {BackboneEvents} options.events
 * @param {() => number} options.now
 * @param {import('@keycast/service').Every} options.every
 * @param {import('./link.js').Log} options.log
 * @returns {Backbone}
 */
export function createBackboneOverLinks({ nodeSource, dialOf, events, now, every, log }) {
  /** @type {Map<string, Node>} */
  const nodes = new Map()
  /** @type {Map<string, { watch: boolean, fetch: boolean, owner: string | undefined }>} */
  const wants = new Map()
  /** @type {Set<PendingRefresh>} */
  const refreshes = new Set()
  const recentRefreshes = createRecentRefreshes({ now })
  /** Names of the nodes keys are routed to. @type {string[]} */
  let candidates = []
  let ownerOf = ownersAmong(candidates)
  let started = false
  let stopped = false

  async function start() {
    await nodeSource.start(onNodes)
    started = true
  }

  async function stop() {
    stopped = true
    nodeSource.stop()
    for (const { link } of nodes.values()) link.stop()
    nodes.clear()
    for (const refresh of refreshes) refresh.fail(new FetcherUnavailable('the gateway is stopping'))
  }

  /** @param {string[]} names */
  function onNodes(names) {
    if (stopped) return // of a look-up that was under way
    for (const node of nodes.values()) node.listed = false
    for (const name of names) {
      const node = nodes.get(name) ?? addNode(name)
      node.listed = true
    }
    route()
  }

  /** @param {string} name */
  function addNode(name) {
    log.info({ node: name }, 'linking to a fetcher node')
    const link = createLink({
      dial: dialOf(name),
      events: {
        held: events.held,
        onAnswer: (answer, isFetched) => {
          if (isFetched) endFetch(answer.key)
          events.onAnswer(answer, isFetched)
        },
        onAlive: () => onJudged(name, 'a fetcher node answers'),
        onDead: () => onJudged(name, 'a fetcher node does not answer'),
      },
      now,
      every,
      log,
    })
    // A node found later has to speak before it is given keys; only at the start nobody is there to take them instead.
    const node = { link, judged: started, listed: true }
    nodes.set(name, node)
    link.start()
    return node
  }

  /** @param {string} name @param {string} what */
  function onJudged(name, what) {
    const node = nodes.get(name)
    if (!node) return
    const changed = !node.judged || candidates.includes(name) !== node.link.alive
    node.judged = true
    if (changed) {
      log.info({ node: name, alive: node.link.alive }, what)
      // What it was not told while it was not there, or not known; it is told of those still pending anyway.
      if (node.link.alive) for (const chunk of chunksOf(recentRefreshes.keys())) node.link.refresh(chunk, () => {})
    }
    route()
  }

  /**
   * A node no longer listed is kept while it speaks and no listed one does: then the name server may be the one who is
   * wrong. Otherwise it goes, lest this gateway ask another node than those do who started since.
   */
  function removeGone() {
    const isReplaced = [...nodes.values()].some(({ listed, link }) => listed && link.alive)
    for (const [name, { listed, link }] of nodes) {
      if (listed || (link.alive && !isReplaced)) continue
      log.info({ node: name }, 'a fetcher node is gone')
      link.stop()
      nodes.delete(name)
    }
  }

  /** Gives every key to its owner among the nodes there are now. */
  function route() {
    removeGone()
    const names = []
    for (const [name, { link, judged }] of nodes) if (link.alive || !judged) names.push(name)
    if (names.join() !== candidates.join()) {
      candidates = names
      ownerOf = ownersAmong(names)
      for (const [key, want] of wants) move(key, want)
    }
    for (const refresh of refreshes) refresh.route()
  }

  /** @param {string} key @param {{ watch: boolean, fetch: boolean, owner: string | undefined }} want */
  function move(key, want) {
    const owner = ownerOf(key)
    if (owner === want.owner) return
    if (want.owner !== undefined) nodes.get(want.owner)?.link.drop(key)
    want.owner = owner
    say(key, want)
  }

  /** @param {string} key @param {{ watch: boolean, fetch: boolean, owner: string | undefined }} want */
  function say(key, want) {
    const link = want.owner === undefined ? undefined : nodes.get(want.owner)?.link
    if (!link) return
    if (want.watch) link.watch(key)
    if (want.fetch) link.fetch(key)
  }

  /** @param {string} key @param {'watch' | 'fetch'} what */
  function want(key, what) {
    const entry = wants.get(key) ?? { watch: false, fetch: false, owner: ownerOf(key) }
    entry[what] = true
    wants.set(key, entry)
    const link = entry.owner === undefined ? undefined : nodes.get(entry.owner)?.link
    link?.[what](key)
  }

  /** @param {string} key */
  function endFetch(key) {
    const entry = wants.get(key)
    if (!entry) return
    entry.fetch = false
    if (!entry.watch) wants.delete(key)
  }

  /** @param {string} key @param {'watch' | 'fetch'} what */
  function unwant(key, what) {
    const entry = wants.get(key)
    if (!entry) return
    entry[what] = false
    if (!entry.watch && !entry.fetch) wants.delete(key)
    const link = entry.owner === undefined ? undefined : nodes.get(entry.owner)?.link
    if (what === 'watch') link?.unwatch(key)
    else link?.cancel(key)
  }

  /** @param {string[]} keys @param {{ deadlineMs: number }} options @returns {Promise<void>} */
  function refresh(keys, { deadlineMs }) {
    if (keys.length === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => pending.fail(new FetcherUnavailable('no fetcher node took the refresh in time')),
        deadlineMs,
      )
      const end = () => {
        clearTimeout(timer)
        refreshes.delete(pending)
        pending.takeBack()
      }
      const pending = createPendingRefresh({
        keys,
        links: () => candidates.flatMap(name => nodes.get(name)?.link ?? []),
        done: () => {
          end()
          recentRefreshes.add(keys)
          resolve()
        },
        fail: error => {
          end()
          reject(error)
        },
      })
      refreshes.add(pending)
      pending.route()
    })
  }

  return {
    start,
    stop,
    refresh,
    watch: key => want(key, 'watch'),
    unwatch: key => unwant(key, 'watch'),
    fetch: key => want(key, 'fetch'),
    cancel: key => unwant(key, 'fetch'),
    ownerOf: key => {
      const node = ownerOf(key)
      return { node, alive: node !== undefined && nodes.get(node)?.link.alive === true }
    },
    nodesAlive: () => {
      let alive = 0
      for (const { link } of nodes.values()) if (link.alive) alive++
      return alive
    },
  }
}
