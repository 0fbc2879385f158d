// A gateway's side of the values that backends hand over and the journal keeps: watched and asked for like fetched ones,
// over the links to journals.
import type { Position } from '@keycast/protocol'
import type { Backbone, FailedAnswer, HandedOver } from '../../backbone.ts'
import { type PushedAnswer, pushedKey, readPushedKey } from '../../wire/pushed-codec.ts'
import type { Answer as RoomAnswer, Rooms } from '../../wire/rooms-codec.ts'
import type { Router } from '../router.ts'
import { createHandOver } from '../values/hand-over.ts'

export type PushedBackbone = Pick<
  Backbone,
  'watch' | 'unwatch' | 'get' | 'cancelGet' | 'renewWatch' | 'handOver' | 'ownerOf' | 'nodesAlive'
>

/** What the journal says of a key: its value, that it has none, that the value held is the latest, or why it cannot tell. */
export type PushedState =
  | (Pick<PushedAnswer, 'order' | 'rank'> & {
      type: 'value'
      key: string
      content: NonNullable<PushedAnswer['content']>
    })
  | { type: 'current'; key: string; version: string }
  | Pick<FailedAnswer, 'type' | 'key' | 'code' | 'message' | 'retryAfterMs'>

/** The functions that a gateway gives it. */
export interface PushedEvents {
  /** The version that the gateway holds of a key. */
  heldVersion?: (key: string) => string | undefined
  /** As `onAnswer` of the backbone of values. */
  onPushed?: (state: PushedState, isGot: boolean) => void
}

interface Options {
  router: Pick<
    Router<Rooms>,
    'watch' | 'unwatch' | 'get' | 'cancelGet' | 'command' | 'isAlive' | 'ownerOf' | 'nodesAlive'
  >
  events: PushedEvents
}

/** Without a version it is that of a removal. */
type Place = Position & { version: string | undefined }

export function createPushedBackbone({ router, events }: Options) {
  /** Of watched keys, the place of the version that the gateway was given last, or was told to be removed. */
  const places = new Map<string, Place | undefined>()

  /** @param key on the wire @returns `undefined` unless the gateway still holds what it was given there */
  function positionOf(wireKey: string): Position | undefined {
    const key = readPushedKey(wireKey)
    const place = key === undefined ? undefined : places.get(key)
    if (key === undefined || !place || events.heldVersion?.(key) !== place.version) return undefined
    return { epoch: place.epoch, seq: place.seq }
  }

  /** @returns whether it is of such a value */
  function onAnswer(answer: RoomAnswer, isGot: boolean): boolean {
    const key = readPushedKey(answer.key)
    if (key === undefined) return false
    const state = stateOf(key, answer)
    if (state) events.onPushed?.(state, isGot)
    return true
  }

  function stateOf(key: string, answer: RoomAnswer): PushedState | undefined {
    const held = places.get(key)
    switch (answer.type) {
      case 'pushed': {
        const { epoch, seq, order, rank, content } = answer
        // Another journal of the log has not heard of it yet.
        if (held?.epoch === epoch && seq < held.seq) return stateAt(key, held)
        // Without an order there never was a value.
        if (places.has(key)) places.set(key, order > 0 ? { epoch, seq, version: content?.version } : undefined)
        if (!content) return noValue(key)
        return { type: 'value', key, order, rank, content }
      }
      case 'unchanged':
        return held && stateAt(key, held)
      case 'failed': {
        const { type, code, message = code, retryAfterMs } = answer
        return { type, key, code, message, retryAfterMs }
      }
      default:
        return undefined
    }
  }

  const handOver = createHandOver({
    command: (asked, done) => (router.isAlive(asked.key) ? router.command(asked, done) : done({ type: 'unsaid' })),
    commandOf: ({ key, ...value }: HandedOver) => ({ type: 'put' as const, key: pushedKey(key), ...value }),
    texts: {
      code: 'journal_unavailable',
      noNode: 'nothing was changed: the journal cannot be reached',
      unknown: 'the journal did not answer in time: perhaps it has the value. Call again',
      refused: 'nothing was changed: the journal is of an earlier release, which takes no values',
    },
  })

  const values: PushedBackbone = {
    watch(key) {
      if (places.has(key)) return
      places.set(key, undefined)
      router.watch(pushedKey(key))
    },
    unwatch(key) {
      if (!places.has(key)) return
      places.delete(key)
      router.unwatch(pushedKey(key))
    },
    get: key => router.get(pushedKey(key)),
    cancelGet: key => router.cancelGet(pushedKey(key)),
    // Nobody is charged for what a backend hands over.
    renewWatch() {},
    handOver,
    ownerOf: key => router.ownerOf(pushedKey(key)),
    nodesAlive: router.nodesAlive,
  }

  return { positionOf, onAnswer, values }
}

const stateAt = (key: string, { version }: Place): PushedState =>
  version === undefined ? noValue(key) : { type: 'current', key, version }

const noValue = (key: string): PushedState => ({
  type: 'failed',
  key,
  code: 'not_found',
  message: 'no value was handed over for this key, or it was removed',
})
