// The backends' streams of changes. Every gateway watches each stream as it watches a key, so one node holds it, and another
// takes over. What the stream names goes to one gateway at a time, which tells all nodes as after POST /v1/refresh. Once
// it has, all gateways are told the position: a node that takes over goes on behind that, and what was not told is
// sent again. Values that its events carry go the same way, and from that gateway to their owners, as PUT /v1/values
// does. Why: docs/decisions, 36.
import { type Answer, type Changed, changesKey, encodeChanged, type HandedOver, type Held } from '@keycast/backbone'
import { createOnceAMinute, type Log, type Namespace, type Namespaces, type World } from '@keycast/service'
import type { Tokens } from '../tokens/tokens.ts'
import { allKeysOf, readChanges } from './changed-keys.ts'
import { openEventStream } from './event-stream.ts'
import type { ChangesMetrics } from './metrics.ts'

/** Keys in one answer to a gateway: more follow when it has told these. */
export const KEYS_PER_BATCH_MAX = 1_000

/** Bytes of values in one answer to a gateway, one value at least: it hands them on before it takes more. */
const BYTES_PER_BATCH = 2 ** 20

/** Where more wait for a gateway, all keys of their namespaces are asked for instead. */
export const KEYS_PENDING_MAX = 100_000

/** Of values that wait for a gateway. Where there are more, their keys are asked for instead. */
const BYTES_PENDING_MAX = 16 * 2 ** 20

/**
 * A stream that goes on where another node's broke off repeats events, all at once: a newer value may have been handed
 * over before. For so long values without an order are asked for instead, and others say that they may be repeated: the
 * order alone tells nothing to a node that came to own the key at the same moment.
 */
export const REPEATED_MS = 10_000

/** A gateway that cannot tell all nodes in this time is helped by another. */
export const PATIENCE_MS = 10_000

export type ChangeStream = ReturnType<typeof createChangeStream>

/** How far a stream is. `order` rises with each batch, also from one node to the next. */
interface Position {
  id: string | undefined
  order: number
}

interface Deps {
  namespaces: Namespaces
  tokens: Pick<Tokens, 'authorizationOf' | 'refused'>
  /** The link is due the stream's latest state. */
  markDue: (link: string, key: string) => void
  metrics: ChangesMetrics
  log: Pick<Log, 'info' | 'warn'>
  openStream?: typeof openEventStream
  now: () => number
  wallNow: () => number
  after: World['after']
  every: World['every']
  turn: World['turn']
}

/** @returns each stream by the key under which gateways watch it */
export function createChanges(deps: Deps): Map<string, ChangeStream> {
  const { namespaces } = deps
  const streams = new Map<string, ChangeStream>()
  for (const name of namespaces.names) {
    const url = namespaces.get(name)?.changes?.url
    if (url === undefined || streams.has(changesKey(url))) continue
    const names = namespaces.names.filter(other => namespaces.get(other)?.changes?.url === url)
    streams.set(changesKey(url), createChangeStream(url, names, deps))
  }
  return streams
}

/** @param names of the namespaces that have it */
function createChangeStream(url: string, names: string[], deps: Deps) {
  const {
    namespaces,
    tokens,
    markDue,
    metrics,
    log,
    now,
    wallNow,
    after,
    every,
    turn,
    openStream = openEventStream,
  } = deps
  const key = changesKey(url)
  const first = namespaces.get(names[0]) as Namespace
  const origin = first.changes?.origin ?? ''
  const isLogDue = createOnceAMinute(now)
  /** The gateways, each with the order of the position that it has. */
  const links = new Map<string, number>()
  /** What every node was told. */
  let position: Position = { id: undefined, order: 0 }
  /** To be told, by key: its value, or `undefined` where it is to be asked for. And the id of the last event among it. */
  const pending = new Map<string, HandedOver | undefined>()
  let pendingBytes = 0
  let pendingId: string | undefined
  /** Until then events may be repeated. */
  let repeatedUntilMs = Number.NEGATIVE_INFINITY
  /** With a gateway, which tells it to the nodes. */
  let batch: (Position & { changed: Changed[]; link: string; isSent: boolean; endPatience: () => void }) | undefined
  let closeStream: (() => void) | undefined
  /** Unless it is up. */
  let downSince: number | undefined
  let polls: (() => void)[] = []

  function open() {
    pendingId = position.id
    repeatedUntilMs = position.id === undefined ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
    downSince = now()
    beginPolling()
    closeStream = openStream({
      url,
      timeoutMs: first.timeoutMs,
      lastEventId: position.id,
      headersOf() {
        const authorization = tokens.authorizationOf(first.name)
        if (authorization === null) return undefined
        return authorization === undefined ? first.headers : { ...first.headers, authorization }
      },
      onUp,
      onEvent,
      onDown,
      now,
      wallNow,
      after,
      turn,
    })
  }

  function close() {
    closeStream?.()
    closeStream = undefined
    endPolling()
    downSince = undefined
    batch?.endPatience()
    batch = undefined
    forgetPending()
  }

  function onUp(isResumed: boolean) {
    log.info({ namespaces: names, isResumed }, "the backend's stream of changes is up")
    metrics.opened(origin, isResumed ? 'resumed' : 'anew')
    downSince = undefined
    repeatedUntilMs = Math.min(repeatedUntilMs, now() + REPEATED_MS)
    endPolling()
    // Nobody knows what changed while there was no stream.
    if (!isResumed) addAll()
  }

  function onDown(why: string, status: number | undefined) {
    if (isLogDue(why)) log.warn({ namespaces: names, why }, "the backend's stream of changes is down")
    if (status === 401) tokens.refused(first.name)
    if (downSince !== undefined) return
    downSince = now()
    beginPolling()
  }

  /** Changes that the stream does not tell are asked for. */
  function beginPolling() {
    polls = names.flatMap(name => {
      const pollMs = namespaces.get(name)?.changes?.pollMs ?? 0
      return pollMs > 0 ? every(pollMs, () => add([allKeysOf(name)])) : []
    })
  }

  function endPolling() {
    for (const end of polls) end()
    polls = []
  }

  function onEvent({ id, data }: { id: string | undefined; data: string }) {
    const { keys, value, problem } = readChanges(data, namespaces, names)
    pendingId = id
    metrics.event(origin, problem === undefined ? 'taken' : 'refused')
    if (problem !== undefined && isLogDue('event')) {
      const action = keys.length > 0 ? 'its keys are asked for' : 'it was passed over'
      log.warn({ namespaces: names, problem }, `an event of the backend cannot be taken: ${action}`)
    }
    if (value) addValue(value)
    add(keys)
  }

  function add(keys: string[]) {
    for (const each of keys) setPending(each, undefined)
    hand()
  }

  function addValue(value: HandedOver) {
    const { key, rank } = value
    const before = pending.get(key)?.rank
    if (rank !== undefined && before !== undefined && rank < before) return
    const given = now() < repeatedUntilMs ? repeated(value) : value
    setPending(key, given && pendingBytes + bytesOf(given) <= BYTES_PENDING_MAX ? given : undefined)
  }

  /** The later one of a key takes the place of the one before. */
  function setPending(key: string, value: HandedOver | undefined) {
    pendingBytes += bytesOf(value) - bytesOf(pending.get(key))
    pending.set(key, value)
    if (pending.size <= KEYS_PENDING_MAX) return
    forgetPending()
    for (const name of names) pending.set(allKeysOf(name), undefined)
  }

  function forgetPending() {
    pending.clear()
    pendingBytes = 0
  }

  const addAll = () => add(names.map(allKeysOf))

  /** Gives what is pending to a gateway, unless one has some already. */
  function hand() {
    const isNews = pending.size > 0 || pendingId !== position.id
    const link = links.keys().next().value
    if (batch || !isNews || link === undefined) return
    const changed = take()
    // The id stands for all events before it: it is not told before their last keys are.
    const id = pending.size === 0 ? pendingId : position.id
    batch = { changed, id, order: nextOrder(), link, isSent: false, endPatience: () => {} }
    handTo(link)
  }

  function take() {
    const changed: Changed[] = []
    let bytes = 0
    for (const [each, value] of pending) {
      bytes += bytesOf(value)
      if (changed.length === KEYS_PER_BATCH_MAX || (bytes > BYTES_PER_BATCH && changed.length > 0)) break
      changed.push(value ?? each)
      pending.delete(each)
      pendingBytes -= bytesOf(value)
    }
    return changed
  }

  const nextOrder = () => Math.max(Math.floor(wallNow()), position.order + 1)

  /** Gives the batch to a gateway, and to the next one after a while. */
  function handTo(link: string) {
    if (!batch) return
    batch.endPatience()
    // Another gateway may have given the values to their owners, and a newer one, or a fetch's, may have come there since.
    if (batch.isSent) {
      batch.changed = batch.changed.map(each => (typeof each === 'string' ? each : (repeated(each) ?? each.key)))
    }
    batch.link = link
    batch.isSent = false
    batch.endPatience = after(PATIENCE_MS, () => {
      // The last in turn from now on.
      const order = links.get(link)
      if (order !== undefined && links.delete(link)) links.set(link, order)
      handTo(links.keys().next().value ?? link)
    })
    markDue(link, key)
  }

  /** Every node was told. */
  function confirm(link: string) {
    if (!batch) return
    batch.endPatience()
    position = { id: batch.id, order: batch.order }
    batch = undefined
    for (const [each, order] of links) {
      if (each === link) links.set(each, position.order)
      else if (order < position.order) markDue(each, key)
    }
    hand()
  }

  return {
    /** A gateway is there, or says how far it is. */
    watch(link: string, held: Held | undefined) {
      const { version = '', order = 0 } = held ?? {}
      links.set(link, order)
      // The node before this one told a gateway this. Streams do not go back: the highest counts, before it is opened.
      if (order > position.order && !batch) {
        position = { id: closeStream ? position.id : version || undefined, order }
      }
      // While gateways disagree about the nodes, another one counts on from the same position.
      if (batch && order === batch.order && version === (batch.id ?? '')) confirm(link)
      else if (order < position.order) markDue(link, key)
      if (!closeStream) open()
      hand()
    },

    /** A gateway left: what it had is another's now. Without any there is nobody to tell. */
    drop(link: string) {
      if (!links.delete(link)) return
      const next = links.keys().next().value
      if (next === undefined) close()
      else if (batch?.link === link) handTo(next)
    },

    /** What a gateway is to be told now: keys that changed, or the position alone. */
    answerFor(link: string): Answer | undefined {
      const order = links.get(link)
      if (order === undefined) return undefined
      if (batch?.link === link && !batch.isSent) {
        batch.isSent = true
        return answer(batch, batch.changed)
      }
      if (order >= position.order) return undefined
      links.set(link, position.order)
      return answer(position, [])
    },

    /** For how long it has been down, at the node that holds it; 0 while it is up. */
    downMs() {
      if (!closeStream) return undefined
      return downSince === undefined ? 0 : now() - downSince
    },
    origin,
    close,
  }

  function answer({ id = '', order }: Position, changed: Changed[]): Answer {
    const body = encodeChanged(changed)
    const content = { contentType: 'application/json', format: 'json' as const, body }
    return { type: 'value', key, version: id, order, ageMs: 0, maxAgeMs: 0, store: false, ...content }
  }
}

/** As one that may come late, and twice; `undefined` where its owner cannot compare it with what it has. */
const repeated = (value: HandedOver): HandedOver | undefined =>
  value.rank === undefined ? undefined : { ...value, isRepeated: true }

const bytesOf = (value: HandedOver | undefined) => value?.content?.body.length ?? 0
