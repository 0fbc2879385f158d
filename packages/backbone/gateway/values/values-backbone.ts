// The gateway's backbone of values: a router that speaks the values' codec, and refreshes, which go to every node.
import { FetcherUnavailable } from '../../backbone.ts'
import { valuesCodec } from '../../wire/values-codec.ts'
import { createRouter } from '../router.ts'
import { createConfirmed } from './confirmed.ts'
import { chunksOf, createPendingRefresh, refreshNotice } from './pending-refresh.ts'
import { createQuestions } from './questions.ts'
import { createRecentRefreshes } from './recent-refreshes.ts'

/** The payload of each watch: changes are enough. */
const QUIET = Object.freeze({ quiet: true })

/**
 * @param {object} options
 * @param {import('../router.ts').NodeSource} options.nodeSource
 * @param {(name: string) => import('../link.ts').Dial} options.dialOf
 * @param {import('../../backbone.ts').BackboneEvents} options.events
 * @param {() => number} options.now
 * @param {import('@keycast/service').Every} options.every
 * @param {Pick<import('@keycast/service').Containment, 'guard' | 'caught'>} [options.containment]
 * @param {import('../link.ts').Log} options.log
 * @returns {import('../../backbone.ts').Backbone}
 */
export function createValuesBackbone({ nodeSource, dialOf, events, containment, now, every, log }) {
  /** @type {Set<import('./pending-refresh.ts').PendingRefresh>} */
  const refreshes = new Set()
  const recentRefreshes = createRecentRefreshes({ now })
  const confirmed = createConfirmed({ now })
  const router = createRouter({
    codec: valuesCodec,
    nodeSource,
    dialOf,
    events: {
      position: events.held,
      payload: payloadOf,
      onAnswer(answer, isGot, link) {
        const isSaidToGoOn = answer.type !== 'failed' && answer.next !== undefined
        events.onAnswer(answer, isGot, isSaidToGoOn ? confirmed.of(link, answer.key) : undefined)
      },
      onHeads: ({ lagsMs }, link) => confirmed.take(link, lagsMs),
      onNode(link) {
        // The node was not told of these while it was out of reach or unknown; refresh calls that are still pending
        // reach it by themselves.
        for (const keys of chunksOf(recentRefreshes.keys())) link.notify(refreshNotice(keys), () => {})
      },
      onRouted() {
        for (const refresh of refreshes) refresh.route()
      },
    },
    containment,
    now,
    every,
    log,
  })
  /** @type {ReturnType<typeof createQuestions<import('../../wire/values-codec.ts').Values>>} */
  const questions = createQuestions({ linkOf: router.linkOf, now })

  /** @param {string} key @param {'watch' | 'get'} type */
  function payloadOf(key, type) {
    const credentials = events.credentials?.(key)
    if (type === 'get') return credentials
    return credentials ? { ...QUIET, ...credentials } : QUIET
  }

  async function stop() {
    questions.stop()
    await router.stop()
    for (const refresh of refreshes) refresh.fail(new FetcherUnavailable('the gateway is stopping'))
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
        links: router.links,
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
    start: router.start,
    stop,
    refresh,
    watch: router.watch,
    unwatch: router.unwatch,
    get: router.get,
    cancelGet: router.cancelGet,
    renewCredentials: key => router.linkOf(key)?.renewWatch(key),
    authorize: (key, credentials, { deadlineMs, maxAgeMs }) =>
      questions.ask(key, { type: 'authorize', key, ...credentials, maxAgeMs }, { deadlineMs }),
    ownerOf: router.ownerOf,
    nodesAlive: router.nodesAlive,
    nodesHeld: router.nodesHeld,
  }
}
