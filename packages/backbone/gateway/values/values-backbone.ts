// The gateway's backbone of values: a router that speaks the values' codec, and refreshes, which go to every node.
import { namespaceOf } from '@keycast/protocol'
import type { Containment, Payer, World } from '@keycast/service'
import type { Backbone, BackboneEvents, Confirmations, Decision, Ruling } from '../../backbone.ts'
import { positionOf, type Values, valuesCodec } from '../../wire/values-codec.ts'
import { readViewerKey } from '../../wire/viewer-key.ts'
import type { Dial, Link, Log } from '../link.ts'
import { createRouter, type NodeSource } from '../router.ts'
import { createHandOver } from './hand-over.ts'
import { createRefreshes } from './refreshes.ts'

/** The payload of each watch: changes are enough. */
const QUIET = Object.freeze({ quiet: true })

interface Options extends World {
  nodeSource: NodeSource
  dialOf: (name: string) => Dial
  events: BackboneEvents
  containment?: Containment
  log: Log
}

export function createValuesBackbone({ events, ...given }: Options): Backbone {
  const confirmed = createConfirmed(given)
  const router = createRouter({
    ...given,
    codec: valuesCodec,
    events: {
      position: (key, type) => positionOf(events.held(key, type)),
      payload: payloadOf,
      payer: (key, type) => events.payer?.(key, type),
      onAnswer(answer, isGot, link, isBefore) {
        // A link that waits for the answer to a get is not told when a refresh takes long.
        const isSaidToGoOn = answer.type !== 'failed' && answer.next !== undefined && !isBefore
        events.onAnswer(answer, isGot, isSaidToGoOn ? confirmed.of(link, answer.key) : undefined)
      },
      onHeads: ({ lagsMs }, link) => confirmed.take(link, lagsMs),
      onNode: link => refreshes.remind(link),
      onRouted: () => refreshes.route(),
    },
  })
  const refreshes = createRefreshes({ ...given, links: router.links })

  function payloadOf(key: string, type: 'watch' | 'get') {
    const credentials = readViewerKey(key) && events.credentials?.(key)
    if (type === 'get') return credentials
    return credentials ? { ...QUIET, ...credentials } : QUIET
  }

  async function stop() {
    await router.stop()
    refreshes.stop()
  }

  /** @returns what the key's owner says; `undefined` if it says nothing */
  const ask = <Result>(command: Values['Command'], options: { deadlineMs: number; payer?: Payer }) =>
    new Promise<Result | undefined>(done =>
      router.command({ key: command.key, command, ...options }, end =>
        done(end.type === 'result' ? (end.result as Result) : undefined),
      ),
    )

  const authorize: Backbone['authorize'] = (key, credentials, { maxAgeMs, ...options }) =>
    ask<Decision>({ type: 'authorize', key, ...credentials, maxAgeMs }, options)

  const askAbout: Backbone['askAbout'] = (message, options) => ask<Ruling>({ type: 'ask', ...message }, options)

  const give = createHandOver({
    command: router.command,
    commandOf: value => ({ type: 'put', ...value }) as const,
    texts: {
      code: 'fetcher_unavailable',
      noNode: 'nothing was changed: no fetcher node can be reached',
      unknown: 'the fetcher node did not answer in time: perhaps it has the value. Call again',
      refused: 'nothing was changed: the fetcher node is of an earlier release, which takes no values',
    },
  })

  const handOver: Backbone['handOver'] = async (value, options) => {
    const owner = router.linkOf(value.key)
    const taken = await give(value, options)
    const taker = owner === router.linkOf(value.key) ? owner : undefined // where the key moved, nobody knows
    if ('outcome' in taken && taken.outcome === 'taken') refreshes.tellOthers(value.key, taker)
    return taken
  }

  return {
    start: router.start,
    stop,
    refresh: refreshes.refresh,
    watch: router.watch,
    unwatch: router.unwatch,
    get: router.get,
    cancelGet: router.cancelGet,
    renewWatch: router.renewWatch,
    authorize,
    askAbout,
    handOver,
    ownerOf: router.ownerOf,
    nodesAlive: router.nodesAlive,
    nodesHeld: router.nodesHeld,
  }
}

type Incarnation = Pick<Link<Values>, 'id'>

/**
 * A beat may be under way for so much longer than the answer did that said when a key's refresh is due. Without it a
 * refresh that has begun, and up to whose time all others are over, would be taken for over itself.
 */
const CARRIED_MS = 1_000

/**
 * The time up to which each node has confirmed its refreshes. A confirmation belongs to one incarnation of a link: another
 * incarnation has other watches, so its confirmations must not count for this one.
 */
export function createConfirmed({ now }: { now: () => number }) {
  const byLink = new WeakMap<Incarnation, { id: string; byNamespace: Map<string, Confirmations> }>()

  function confirmationsOf(link: Incarnation, namespace: string): Confirmations {
    let own = byLink.get(link)
    if (own?.id !== link.id) {
      // Confirmations of the incarnation before stay with the keys that have them, and move no more.
      own = { id: link.id, byNamespace: new Map() }
      byLink.set(link, own)
    }
    let confirmations = own.byNamespace.get(namespace)
    if (!confirmations) {
      confirmations = { untilMs: Number.NEGATIVE_INFINITY }
      own.byNamespace.set(namespace, confirmations)
    }
    return confirmations
  }

  return {
    of: (link: Incarnation, key: string) => confirmationsOf(link, namespaceOf(key)),

    /** A beat reported the node's progress. @param lagsMs by namespace */
    take(link: Incarnation, lagsMs: Record<string, number>) {
      const nowMs = now()
      for (const [namespace, lagMs] of Object.entries(lagsMs)) {
        const confirmations = confirmationsOf(link, namespace)
        confirmations.untilMs = Math.max(confirmations.untilMs, nowMs - lagMs - CARRIED_MS)
      }
    },
  }
}
