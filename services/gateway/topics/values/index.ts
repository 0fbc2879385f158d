// Puts the parts of values together: what is known of each key, how the fetcher is asked, and who is told what changed.
import type { Backbone, BackboneEvents } from '@keycast/backbone'
import { createCalendar, createTurns, type Namespaces, workTurn } from '@keycast/service'
import type { Viewer, Viewers } from '../../access/backend/viewers.ts'
import type { Counts } from '../../counts.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import { valueBytes } from '../../encodings/index.ts'
import type { Gate } from '../../gate/gate.ts'
import { createCache } from './cache.ts'
import type { Entry } from './entry.ts'
import { createOwnValueTokens } from './own-value-tokens.ts'
import { createOwnValues } from './own-values.ts'
import { createSingleFlight } from './single-flight.ts'
import { createStaleness } from './staleness.ts'
import { createSubscriptions } from './subscriptions.ts'
import { createTakeAnswer } from './take-answer.ts'
import { createValues } from './values.ts'

interface Deps {
  settings: { cacheBytesMax: number }
  namespaces: Namespaces
  backbone: Backbone
  viewers: Pick<Viewers, 'named'>
  gate: Pick<Gate, 'release'>
  outbox: Outbox
  histograms: {
    delivered(fanOut: { startMs: number; endMs: number; askedAtMs: number; delayMs: number | undefined }): void
  }
  counts: Counts
  /** Monotonic, in milliseconds. */
  now: () => number
  /** In milliseconds since 1970. */
  wallNow: () => number
  /** In the next turn of the event loop. */
  turn: (run: () => void) => void
}

export function assembleValues({
  settings,
  namespaces,
  backbone,
  viewers,
  gate,
  outbox,
  histograms,
  counts,
  now,
  wallNow,
  turn,
}: Deps) {
  const calendar = createCalendar<Entry>()
  const ownValues = createOwnValues({ viewers, wallNow })
  const cache = createCache({
    bytesMax: settings.cacheBytesMax,
    valueBytes,
    onUnwanted: calendar.cancel,
    mayKeep: ownValues.mayKeep,
    onRemoved: ownValues.removed,
  })
  const staleness = createStaleness({ calendar, backbone, now })
  const subscriptions = createSubscriptions({ gate, cache, backbone, outbox, staleness, onFanOut, counts, now })
  const { kind } = subscriptions
  const values = createValues({ namespaces, cache, backbone, kind, onOpened: ownValues.opened, now })
  const singleFlight = createSingleFlight({ values, cache, backbone, calendar, counts, now })
  const takeAnswer = createTakeAnswer({ cache, backbone, ownValues, values, singleFlight, subscriptions, now })
  const ownValueTokens = createOwnValueTokens({ ownValues, cache, backbone, subscriptions, now })

  /** With a million keys many thousands come up at one time: what the first turn leaves is looked at in later ones. */
  const looks = createTurns({ now, turn, step: lookAtNext })

  /** @returns whether there may be more to look at */
  function lookAtNext(): boolean {
    const entry = calendar.takeDue(now())
    if (!entry) return false
    singleFlight.expire(entry)
    subscriptions.check(entry)
    return true
  }

  function lookAtDue() {
    if (workTurn(now, lookAtNext)) looks.start()
  }

  function onFanOut({ value, askedAtMs }: Entry) {
    const startMs = now()
    if (value) value.receivedAtMs = startMs
    outbox.fence(() => histograms.delivered({ startMs, endMs: now(), askedAtMs, delayMs: value?.delayMs }))
  }

  const events: Required<BackboneEvents> = {
    held: values.held,
    credentials: key => ownValues.credentialsFor(cache.peek(key)),
    onAnswer: takeAnswer,
  }

  return {
    values,
    singleFlight,
    ownValues,
    events,

    /** What viewers' tokens are to the values that were fetched with them. */
    tokens: ownValueTokens as {
      ended: (viewer: Viewer) => void
      renewed: (viewer: Viewer) => void
      expired: (viewer: Viewer) => void
    },

    /** The record of a key, if there is one. */
    peek: cache.peek,
    latest: (wireKey: string) => cache.peek(wireKey)?.value,

    /** The key's value takes more memory now. */
    grown(wireKey: string) {
      const entry = cache.peek(wireKey)
      if (entry) cache.update(entry)
    },

    sweep() {
      lookAtDue()
      ownValueTokens.sweep()
    },

    stats() {
      const { bytes: cacheBytes, entries: cacheEntries } = cache.stats()
      return { ...subscriptions.stats(), ...ownValues.stats(), cacheBytes, cacheEntries }
    },
  }
}
