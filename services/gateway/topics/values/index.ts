// Puts the parts of values together: what is known of each key, how the fetcher is asked, and who is told what changed.
import type { Backbone, BackboneEvents } from '@keycast/backbone'
import { createCalendar, createTurns, type ValueNamespaces, type World, workTurn } from '@keycast/service'
import type { Viewer, Viewers } from '../../access/backend/viewers.ts'
import type { Counts } from '../../counts.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import type { GatePart } from '../../gate/index.ts'
import { createAnswers } from './answers.ts'
import { createCache, type Entry } from './cache.ts'
import { createOwnValueTokens } from './own-value-tokens.ts'
import { createOwnValues } from './own-values.ts'
import { payerOf } from './payer-choice.ts'
import { createSingleFlight } from './single-flight.ts'
import { createStaleness, leaveNode } from './staleness.ts'
import { createSubscriptions } from './subscriptions.ts'
import { createValues } from './values.ts'

interface Deps extends Pick<World, 'now' | 'wallNow' | 'turn'> {
  settings: { cacheBytesMax: number }
  namespaces: ValueNamespaces
  backbone: Backbone
  viewers: Viewers
  gate: GatePart
  outbox: Outbox
  counts: Counts
}

export function assembleValues(deps: Deps) {
  const { settings, now, turn } = deps
  const calendar = createCalendar<Entry>()
  const ownValues = createOwnValues(deps)
  const cache = createCache({
    bytesMax: settings.cacheBytesMax,
    onUnwanted: calendar.cancel,
    mayKeep: ownValues.mayKeep,
    onRemoved: ownValues.removed,
  })
  const staleness = createStaleness({ ...deps, calendar })
  const subscriptions = createSubscriptions({ ...deps, cache, calendar, staleness, onOpened: ownValues.opened })
  const values = createValues({ ...deps, cache })
  const singleFlight = createSingleFlight({ ...deps, subscriptions, cache, calendar })
  const ownValueTokens = createOwnValueTokens({ ...deps, ownValues, cache, subscriptions })
  const onAnswer = createAnswers({ ...deps, cache, ownValues, ownValueTokens, values, singleFlight, subscriptions })

  /** With a million keys many thousands come up at one time: what the first turn leaves is checked in later ones. */
  const checks = createTurns({ now, turn, step: checkNext })

  /** @returns whether there may be more that is due */
  function checkNext(): boolean {
    const entry = calendar.takeDue(now())
    if (!entry) return false
    singleFlight.expire(entry)
    subscriptions.check(entry)
    return true
  }

  function checkDue() {
    if (workTurn(now, checkNext)) checks.start()
  }

  /**
   * Entries still to be told that no node is alive; none outside of a walk. V8 keeps, with an iterator that stands still,
   * each table that its Map had meanwhile, and all that was in it.
   */
  let unaware: Iterator<Entry> | undefined
  const silencing = createTurns({ now, turn, step: silenceNext })

  /** @returns whether there are more */
  function silenceNext(): boolean {
    const next = unaware?.next()
    if (!next || next.done) {
      unaware = undefined
      return false
    }
    staleness.fellSilent(next.value)
    return true
  }

  const events: Required<BackboneEvents> = {
    // Looked up each time a node is about to be asked.
    held(key, type) {
      const held = values.held(key, type)
      const entry = cache.peek(key)
      if (entry) leaveNode(entry)
      return held
    },
    credentials: key => ownValues.credentialsFor(cache.peek(key)),
    payer: (key, type) => payerOf(cache.peek(key), type),
    onAnswer,
  }

  return {
    values,
    openWatched: subscriptions.openWatched,
    payerChanged: subscriptions.payerChanged,
    singleFlight,
    ownValues,
    events,

    /** What viewers' tokens are to the values that were fetched with them. */
    tokens: ownValueTokens as {
      ended: (viewer: Viewer) => void
      renewed: (viewer: Viewer) => void
      expired: (viewer: Viewer) => void
    },

    /** keycast.yaml has other times for some namespaces. */
    ease: staleness.ease,

    /** The record of a key, if there is one. */
    peek: cache.peek,
    latest: (wireKey: string) => cache.peek(wireKey)?.value,

    /** The key's value takes more memory now. */
    grown(wireKey: string) {
      const entry = cache.peek(wireKey)
      if (entry) cache.update(entry)
    },

    sweep() {
      if (staleness.haveAllFallenSilent()) {
        unaware = cache.entries()
        silencing.start()
      }
      checkDue()
      ownValueTokens.sweep()
    },

    stats() {
      const { bytes: cacheBytes, wantedBytes: cacheWantedBytes, entries: cacheEntries } = cache.stats()
      return { ...subscriptions.stats(), ...ownValues.stats(), cacheBytes, cacheWantedBytes, cacheEntries }
    },
  }
}
