// For tests: a backend in the same process. Keys have revisions, each from a time on; it is asked, tells by events what changed,
// and is in trouble now and then.
import { idOf, namespaceOf } from '@keycast/protocol'
import type { StreamOptions } from '../fetcher/primary/changes/event-stream.ts'
import type { Asked } from './cluster.fixture.ts'
import type { Kernel, Process } from './kernel.fixture.ts'

/** `since`: when each revision began; `isThere`: whether the key has a value then. */
export interface Truth {
  revision: number
  since: number[]
  isThere: boolean[]
}

export interface Trouble {
  /** A namespace, `questions` whether somebody may read, or `all`. */
  of: string
  how: string
}

export const troubles = ['500', '503', '429', '403', 'silence', 'cut', 'slow', 'broken']

/** For how long a request may wait for a change. */
const WAIT_MS = 20_000

interface Options {
  kernel: Kernel
  random: () => number
  /** By `Authorization`. */
  userOf: (authorization: string | undefined) => string | undefined
  mayRead: (key: string, user: string | undefined) => boolean
  /** Events have ids, by which a stream goes on. */
  hasIds: boolean
  /** Of which events tell. */
  streamed: string[]
  /** Whether each user has a value of their own. */
  isOwn?: (key: string) => boolean
}

export type Backend = ReturnType<typeof createBackend>

export function createBackend({ kernel, random, userOf, mayRead, hasIds, streamed, ...given }: Options) {
  const self = kernel.create('backend')
  const truths = new Map<string, Truth>()
  const waiting = new Set<{ key: string; answer: (status?: number) => void }>()
  const events: { id: number; data: string }[] = []
  const listeners = new Set<{ take: (event: { id: number; data: string }) => void; end: () => void }>()
  /** How often each value was asked for. */
  const asked = new Map<string, number>()
  const underWay = new Map<string, Asked[]>()
  const amiss: string[] = []
  const state = { trouble: undefined as Trouble | undefined, isStreaming: true, oldestId: 1 }

  const isOwn = given.isOwn ?? ((key: string) => namespaceOf(key) === 'own')
  const nameOf = (key: string, user?: string) => (isOwn(key) ? `${key} of ${user}` : key)

  function truthOf(key: string, user?: string): Truth {
    const name = nameOf(key, user)
    const known = truths.get(name) ?? { revision: 1, since: [0, 0], isThere: [true, true] }
    truths.set(name, known)
    return known
  }

  /** @param by how it came */
  function contentOf(key: string, user: string | undefined, by: 'fetch' | 'put') {
    const { revision } = truthOf(key, user)
    const text = `${'the same in all revisions '.repeat(10)}${revision}`
    return JSON.stringify({ id: idOf(key), key, user: isOwn(key) ? String(user) : undefined, revision, by, text })
  }

  function onAsked(request: Asked) {
    const { host, pathname, searchParams } = new URL(request.url)
    const [, name, id] = pathname.split('/')
    const user = userOf(request.headers.authorization)
    if (host === 'questions') return onQuestion(request, `${name}:${id}`, user)
    const keys = (searchParams.get('ids')?.split(',') ?? [id]).map(each => `${name}:${each}`)
    const wait = request.headers.prefer
    for (const key of keys) {
      asked.set(nameOf(key, user), (asked.get(nameOf(key, user)) ?? 0) + 1)
      if (!wait) noteUnderWay(request, nameOf(key, user))
    }
    const isOf = state.trouble?.of === name || state.trouble?.of === 'all'
    if (isOf && random() < 0.9 && isInTrouble(request, (state.trouble as Trouble).how)) return
    const tookMs = isOf && state.trouble?.how === 'slow' ? random() * 1_500 : random() * (random() < 0.5 ? 3 : 20)
    const rarely = ['no-store', 'max-age=0', 'private', 'max-age=60'][Math.floor(random() * 80)]
    const head = { 'content-type': 'application/json', ...(rarely && { 'cache-control': rarely }) }
    if (name === 'batch') {
      const items = keys.filter(each => isThere(each)).map(key => contentOf(key, undefined, 'fetch'))
      return request.answer(tookMs, 200, head, `{"items":[${items}]}`)
    }
    const [key] = keys
    const answer = (status = 200) => answerOne(request, { key, user, status, tookMs: wait ? 1 : tookMs, head })
    if (!wait || !isThere(key) || request.headers['if-none-match'] !== etagOf(key)) return answer()
    const one = { key, answer }
    waiting.add(one)
    kernel.schedule(self, kernel.now() + WAIT_MS, () => waiting.delete(one) && answer(304))
  }

  const isThere = (key: string, user?: string) => truthOf(key, user).isThere[truthOf(key, user).revision]
  const etagOf = (key: string, user?: string) => `"${truthOf(key, user).revision}"`

  interface One {
    key: string
    user: string | undefined
    status: number
    tookMs: number
    head: Record<string, string>
  }

  function answerOne(request: Asked, { key, user, status, tookMs, head }: One) {
    const { headers } = request
    if (!isThere(key, user)) return request.answer(tookMs, 404, {}, '')
    const etag = etagOf(key, user)
    const more = { ...head, etag, ...(headers.prefer && { 'preference-applied': 'wait' }) }
    if (status === 304 || headers['if-none-match'] === etag) request.answer(tookMs, 304, more, '')
    else request.answer(tookMs, 200, more, contentOf(key, user, 'fetch'))
  }

  /** @returns whether that is its answer, or that there is none */
  function isInTrouble(request: Asked, how: string) {
    if (how === 'slow') return false
    if (how === 'cut') request.cut(5)
    else if (how === 'broken') request.answer(5, 200, { 'content-type': 'application/json' }, '{"revision":')
    else if (how !== 'silence') request.answer(5, Number(how), random() < 0.5 ? { 'retry-after': '1' } : {}, '')
    return true
  }

  function onQuestion(request: Asked, key: string, user: string | undefined) {
    if (state.trouble?.of !== 'questions') return request.answer(5, mayRead(key, user) ? 200 : 403, {}, '')
    if (state.trouble.how !== 'silence') request.answer(5, 500, {}, '')
  }

  /** A node has one fetch of a key under way, unless it has given a worker up that still asks. */
  function noteUnderWay(request: Asked, name: string) {
    const of = `${request.node} ${name}`
    const all = (underWay.get(of) ?? []).filter(each => !each.isOver()).concat(request)
    underWay.set(of, all)
    if (all.filter(({ worker }) => worker === request.worker).length > 1)
      amiss.push(`${of} is asked for twice at a time`)
  }

  function tell(data: string) {
    const event = { id: events.length + 1, data }
    events.push(event)
    for (const { take } of listeners) take(event)
  }

  return {
    state,
    asked,
    amiss,
    onAsked,
    truthOf,
    contentOf,
    isThere,

    change(key: string, user: string | undefined, isThereNow: boolean) {
      const truth = truthOf(key, user)
      truth.revision++
      truth.since[truth.revision] = kernel.now()
      truth.isThere[truth.revision] = isThereNow
      for (const one of waiting) if (one.key === key && waiting.delete(one)) one.answer()
      const name = namespaceOf(key)
      if (!streamed.includes(name)) return
      const order = truth.revision
      if (name === 'named') tell(JSON.stringify({ key }))
      else if (!isThereNow) tell(JSON.stringify({ key, delete: true, order }))
      else tell(`{"key":"${key}","value":${contentOf(key, undefined, 'put')},"order":${order}}`)
    },

    /** Ends all streams. @param forgets those that come back are told that anything may have changed */
    endStreams(forgets: boolean) {
      if (forgets) state.oldestId = events.length + 1
      for (const { end } of [...listeners]) end()
    },

    /** As event-stream.ts does it over HTTP. */
    openStream(node: Process, { lastEventId, onUp, onEvent, onDown }: StreamOptions): () => void {
      let lastId = lastEventId
      let failures = 0
      let isClosed = false
      let leave = () => {}

      function again() {
        onDown('it ended', undefined)
        kernel.schedule(node, kernel.now() + Math.min(30_000, 1_000 * 2 ** failures++), connect)
      }

      function connect() {
        if (isClosed) return
        if (!state.isStreaming || random() < 0.1) return again()
        let isOver = false
        let lastMs = kernel.now()
        const later = (run: () => void) => {
          lastMs = Math.max(lastMs + 0.001, kernel.now() + 0.5 + random() * 2)
          kernel.schedule(node, lastMs, () => isOver || isClosed || run())
        }
        const take = ({ id, data }: { id: number; data: string }) =>
          later(() => {
            if (hasIds) lastId = String(id)
            onEvent({ id: lastId, data })
          })
        const one = {
          take,
          end() {
            listeners.delete(one)
            later(() => {
              isOver = true
              if (hasIds) failures = 0
              again()
            })
          },
        }
        leave = () => listeners.delete(one)
        const from = lastId === undefined ? undefined : Number(lastId)
        later(() => onUp(from !== undefined))
        if (from !== undefined && from + 1 < state.oldestId) {
          for (const name of streamed) take({ id: events.length, data: JSON.stringify({ key: `${name}:*` }) })
        } else if (from !== undefined) for (const event of events.slice(from)) take(event)
        listeners.add(one)
      }

      kernel.schedule(node, kernel.now() + 1, connect)
      return () => {
        isClosed = true
        leave()
      }
    },
  }
}
