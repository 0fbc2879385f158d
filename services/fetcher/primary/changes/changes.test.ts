import { changesKey, decodeChanged } from '@keycast/backbone'
import type { Namespace, Namespaces } from '@keycast/service'
import { createChanges, KEYS_PENDING_MAX, KEYS_PER_BATCH_MAX, PATIENCE_MS, REPEATED_MS } from './changes.ts'
import type { StreamOptions } from './event-stream.ts'

const URL = 'http://api/changes'
const KEY = changesKey(URL)

/** A stream that the test speaks for, two namespaces that have it, and a clock that the test turns. */
function setup({ token }: { token?: string | null } = {}) {
  let at = 1_000
  let timers: { dueAt: number; everyMs?: number; run: () => void }[] = []
  const set = (ms: number, run: () => void, everyMs?: number) => {
    const timer = { dueAt: at + ms, everyMs, run }
    timers.push(timer)
    return () => {
      timers = timers.filter(each => each !== timer)
    }
  }
  const opened: StreamOptions[] = []
  let closed = 0
  const due: string[] = []
  const refused: string[] = []
  const counted: string[] = []
  const changes = { url: URL, origin: 'http://api', pollMs: 2_000 }
  const named: Record<string, Partial<Namespace>> = {
    doc: { headers: { 'x-key': 'k' }, timeoutMs: 500, bytesMax: 2 ** 20, changes },
    list: { headers: { 'x-key': 'k' }, timeoutMs: 500, changes: { ...changes, pollMs: 0 } },
    other: {},
  }
  const streams = createChanges({
    namespaces: { names: Object.keys(named), get: name => ({ name, ...named[name] }) } as Namespaces,
    tokens: { authorizationOf: () => token, refused: name => refused.push(name) },
    markDue: (link, key) => {
      expect(key).toBe(KEY)
      due.push(link)
    },
    metrics: { event: (...of) => counted.push(of.join(' ')), opened: (...of) => counted.push(of.join(' ')) },
    log: { info() {}, warn() {} } as never,
    openStream(options) {
      opened.push(options)
      return () => {
        closed++
      }
    },
    now: () => at,
    wallNow: () => at,
    after: (ms, run) => set(ms, run),
    turn: setImmediate,
    every: (ms, run) => set(ms, run, ms),
  })
  const stream = streams.get(KEY)
  if (!stream || streams.size !== 1) throw new Error('there is one stream')
  const orders = new Map<string, { version: string; order: number; ageMs: number }>()
  return {
    stream,
    opened,
    closed: () => closed,
    refused,
    counted,
    /** As the stream that was opened last. */
    up: (isResumed = false) => opened.at(-1)?.onUp(isResumed),
    down: (status?: number) => opened.at(-1)?.onDown('it broke', status),
    event: (id: string | undefined, ...keys: string[]) =>
      opened.at(-1)?.onEvent({ id, data: JSON.stringify({ keys }) }),
    /** An event with a value. */
    carry: (id: string | undefined, key: string, value: unknown, order?: number) =>
      opened.at(-1)?.onEvent({ id, data: JSON.stringify({ key, value, order }) }),
    watch: (link: string) => stream.watch(link, orders.get(link)),
    /** The links that are due something. */
    due: () => due.splice(0),
    /** What a link with credit is sent. */
    take(link: string) {
      const answer = stream.answerFor(link)
      if (answer?.type !== 'value' || answer.order === undefined) return undefined
      const position = { version: answer.version, order: answer.order, ageMs: 0 }
      const keys = decodeChanged(answer.body).map(each =>
        typeof each === 'string'
          ? each
          : `${each.key} ${each.content?.body ?? 'none'} ${each.rank ?? '-'}${each.isRepeated ? ' again' : ''}`,
      )
      return { id: answer.version, keys, position }
    },
    /** The link told all nodes. */
    told(link: string, position: { version: string; order: number; ageMs: number } | undefined) {
      if (position) orders.set(link, position)
      stream.watch(link, position)
    },
    pass(ms: number) {
      const until = at + ms
      for (;;) {
        const next = timers.filter(({ dueAt }) => dueAt <= until).sort((a, b) => a.dueAt - b.dueAt)[0]
        if (!next) break
        at = next.dueAt
        if (next.everyMs) next.dueAt += next.everyMs
        else timers = timers.filter(each => each !== next)
        next.run()
      }
      at = until
    },
  }
}

/** A stream that is up, and what was asked for then was told. */
function running(links: string[]) {
  const parts = setup()
  for (const link of links) parts.watch(link)
  parts.up()
  parts.told(links[0], parts.take(links[0])?.position)
  for (const link of links) parts.take(link)
  parts.due()
  return parts
}

test('the stream is open while a gateway is there', () => {
  const { watch, opened, stream, closed } = setup()
  expect(opened).toEqual([])
  watch('a')
  watch('b')
  expect(opened).toHaveLength(1)
  stream.drop('a')
  expect(closed()).toBe(0)
  stream.drop('b')
  expect(closed()).toBe(1)
})

test('it is asked for as the namespaces are', () => {
  for (const [token, headers] of [
    [undefined, { 'x-key': 'k' }],
    ['Bearer t', { 'x-key': 'k', authorization: 'Bearer t' }],
    [null, undefined],
  ] as const) {
    const { watch, opened } = setup({ token })
    watch('a')
    expect(opened[0]).toMatchObject({ url: URL, timeoutMs: 500, lastEventId: undefined })
    expect(opened[0].headersOf()).toEqual(headers)
  }
})

test('a token that it refuses is renewed', () => {
  const { watch, down, refused } = setup()
  watch('a')
  down(503)
  down(401)
  expect(refused).toEqual(['doc'])
})

test('the keys of its events go to one gateway, and the position to all once every node was told', () => {
  const { event, due, take, told } = running(['a', 'b'])
  event('7', 'doc:1', 'list:2')
  expect(due()).toEqual(['a'])
  const sent = take('a')
  expect(sent).toMatchObject({ id: '7', keys: ['doc:1', 'list:2'] })
  expect(take('a')).toBeUndefined()
  expect(take('b')).toBeUndefined()
  told('a', sent?.position)
  expect(due()).toEqual(['b'])
  expect(take('b')).toEqual({ ...sent, keys: [] })
})

test('what comes while keys are told follows them, each key once', () => {
  const { event, due, take, told } = running(['a'])
  event('1', 'doc:1')
  const first = take('a')
  event('2', 'doc:2')
  event('3', 'doc:3', 'doc:2')
  expect(first).toMatchObject({ id: '1', keys: ['doc:1'] })
  expect(take('a')).toBeUndefined()
  due()
  told('a', first?.position)
  expect(due()).toEqual(['a'])
  expect(take('a')).toMatchObject({ id: '3', keys: ['doc:2', 'doc:3'] })
})

test('the id of an event is a position only once its last key was told', () => {
  const { event, take, told } = running(['a'])
  event('1', ...Array.from({ length: KEYS_PER_BATCH_MAX + 1 }, (_, id) => `doc:${id}`))
  const first = take('a')
  expect(first).toMatchObject({ id: '' })
  expect(first?.keys).toHaveLength(KEYS_PER_BATCH_MAX)
  told('a', first?.position)
  expect(take('a')).toMatchObject({ id: '1', keys: [`doc:${KEYS_PER_BATCH_MAX}`] })
})

test('what a gateway had when it left goes to another', () => {
  const { event, due, take, stream } = running(['a', 'b'])
  event('7', 'doc:1')
  take('a')
  due()
  stream.drop('a')
  expect(due()).toEqual(['b'])
  expect(take('b')).toMatchObject({ id: '7', keys: ['doc:1'] })
})

test('a gateway that cannot tell all nodes is helped by the next one, and whichever is done first counts', () => {
  const { event, due, take, told, pass } = running(['a', 'b'])
  event('7', 'doc:1')
  const sent = take('a')
  due()
  pass(PATIENCE_MS)
  expect(due()).toEqual(['b'])
  expect(take('b')).toEqual(sent)
  told('a', sent?.position)
  event('8', 'doc:2')
  expect(take('b')).toMatchObject({ id: '8', keys: ['doc:2'] })
})

test('another node goes on where every node was told, by what its gateways say', () => {
  const { stream, opened, up, take } = setup()
  stream.watch('a', { version: '41', order: 500, ageMs: 0 })
  expect(opened[0].lastEventId).toBe('41')
  up(true)
  // Nothing is asked for: the backend goes on there.
  expect(take('a')).toBeUndefined()
  // A gateway that is behind is told.
  stream.watch('b', { version: '40', order: 400, ageMs: 0 })
  expect(take('b')).toMatchObject({ id: '41', keys: [] })
})

test('orders rise, whatever the clock of the node before was', () => {
  const { stream, up, event, take } = setup()
  stream.watch('a', { version: '41', order: 2 ** 50, ageMs: 0 })
  up(true)
  event('42', 'doc:1')
  expect(take('a')?.position.order).toBe(2 ** 50 + 1)
})

test('what another node told with the same order, as both count on from one position, is not taken for told by this one', () => {
  const { event, stream, take, told } = setup()
  for (const link of ['a', 'b']) told(link, { version: '7', order: 5_000, ageMs: 0 })
  event('8', 'doc:1')
  const first = take('a')
  event('9', 'doc:2')
  event('10', 'doc:3')
  told('a', first?.position)
  // There it was handed out before the next event came.
  told('b', { version: '9', order: 5_002, ageMs: 0 })
  stream.drop('a')
  expect(take('b')).toMatchObject({ id: '10', keys: ['doc:2', 'doc:3'], position: { order: 5_002 } })
})

test('after a gap all keys of its namespaces are asked for', () => {
  const { watch, up, down, take, told } = setup()
  watch('a')
  up()
  const first = take('a')
  expect(first).toMatchObject({ id: '', keys: ['doc:*', 'list:*'] })
  told('a', first?.position)
  down()
  up(true)
  expect(take('a')).toBeUndefined()
  down()
  up(false)
  expect(take('a')).toMatchObject({ keys: ['doc:*', 'list:*'] })
})

test('while it is down keys are asked for at each refresh', () => {
  const { watch, up, down, take, told, pass } = setup()
  const asked = () => {
    const sent = take('a')
    told('a', sent?.position)
    return sent?.keys
  }
  watch('a')
  pass(1_999)
  expect(asked()).toBeUndefined()
  pass(1)
  expect(asked()).toEqual(['doc:*'])
  pass(2_000)
  expect(asked()).toEqual(['doc:*'])
  up()
  asked()
  pass(60_000)
  expect(asked()).toBeUndefined()
  down()
  down()
  pass(2_000)
  expect(asked()).toEqual(['doc:*'])
})

test('its metrics say for how long it was down, at the node that holds it', () => {
  const { stream, watch, up, down, event, counted, opened, pass } = setup()
  expect(stream.downMs()).toBeUndefined()
  watch('a')
  pass(300)
  expect(stream.downMs()).toBe(300)
  up()
  expect(stream.downMs()).toBe(0)
  event('1', 'doc:1')
  opened[0].onEvent({ id: '2', data: 'no JSON' })
  expect(counted).toEqual(['http://api anew', 'http://api taken', 'http://api refused'])
  down()
  down()
  pass(100)
  expect(stream.downMs()).toBe(100)
  stream.drop('a')
  expect(stream.downMs()).toBeUndefined()
})

test('a stream that opens and breaks off again and again is counted each time, though it is down for a moment only', () => {
  const { stream, watch, up, down, counted, pass } = setup()
  watch('a')
  up()
  for (let n = 0; n < 5; n++) {
    down()
    pass(1_000)
    up(n > 0)
    expect(stream.downMs()).toBe(0)
  }
  expect(counted).toEqual([...Array(2).fill('http://api anew'), ...Array(4).fill('http://api resumed')])
})

test('more keys than can wait for a gateway are all keys', () => {
  const { event, take, told } = running(['a'])
  event('1', 'doc:first')
  const first = take('a')
  for (let at = 0; at <= KEYS_PENDING_MAX; at += 1_000) {
    event('2', ...Array.from({ length: 1_000 }, (_, id) => `doc:${at + id}`))
  }
  told('a', first?.position)
  expect(take('a')?.keys.slice(0, 2)).toEqual(['doc:*', 'list:*'])
})

test('values that its events carry go the same way, in the order of the events', () => {
  const { carry, event, take, told } = running(['a'])
  carry('1', 'doc:1', 'one', 7)
  const first = take('a')
  expect(first).toMatchObject({ id: '1', keys: ['doc:1 "one" 7'] })
  carry('2', 'doc:2', 'two')
  event('3', 'doc:3')
  carry('4', 'doc:1', 'later', 8)
  expect(take('a')).toBeUndefined()
  told('a', first?.position)
  expect(take('a')).toMatchObject({ id: '4', keys: ['doc:2 "two" -', 'doc:3', 'doc:1 "later" 8'] })
})

test('of what waits for a gateway the last event of a key counts, but for a lower order', () => {
  const { carry, event, take, told } = running(['a'])
  event('1', 'doc:0')
  const first = take('a')
  carry('2', 'doc:1', 'one', 7)
  carry('3', 'doc:1', 'before', 6)
  carry('4', 'doc:2', 'two', 7)
  event('5', 'doc:2')
  event('6', 'doc:3')
  carry('7', 'doc:3', 'three')
  told('a', first?.position)
  expect(take('a')).toMatchObject({ id: '7', keys: ['doc:1 "one" 7', 'doc:2', 'doc:3 "three" -'] })
})

test('a value that cannot be taken is counted, and its key is asked for', () => {
  const { carry, take, counted } = running(['a'])
  carry('1', 'doc:1', 'one', -1)
  expect(take('a')).toMatchObject({ id: '1', keys: ['doc:1'] })
  expect(counted.at(-1)).toBe('http://api refused')
})

test('values that wait are bounded in bytes: past that their keys are asked for; and a gateway gets a MiB at a time', () => {
  const { carry, event, take, told } = running(['a'])
  event('1', 'doc:first')
  let sent = take('a')
  for (let n = 0; n < 40; n++) carry(`${n + 2}`, `doc:${n}`, 'x'.repeat(500_000))
  let [batches, values, names] = [0, 0, 0]
  for (;;) {
    told('a', sent?.position)
    sent = take('a')
    if (!sent) break
    const carried = sent.keys.filter(each => each.length > 100)
    expect(carried.length).toBeLessThanOrEqual(2)
    batches++
    values += carried.length
    names += sent.keys.length - carried.length
  }
  expect([values, names]).toEqual([33, 7])
  expect(batches).toBeGreaterThan(16)
})

test('where a node goes on for another one, events come again: at first values say so, and without an order are asked for', () => {
  const { stream, up, carry, take, told, pass } = setup()
  stream.watch('a', { version: '41', order: 500, ageMs: 0 })
  pass(1_900)
  up(true)
  carry('42', 'doc:1', 'one')
  const first = take('a')
  expect(first).toMatchObject({ keys: ['doc:1'] })
  told('a', first?.position)
  carry('43', 'doc:1', 'two', 2)
  const second = take('a')
  expect(second).toMatchObject({ keys: ['doc:1 "two" 2 again'] })
  told('a', second?.position)
  pass(REPEATED_MS)
  carry('44', 'doc:1', 'three')
  carry('45', 'doc:2', 'four', 4)
  const third = take('a')
  expect(third).toMatchObject({ keys: ['doc:1 "three" -'] })
  told('a', third?.position)
  expect(take('a')).toMatchObject({ keys: ['doc:2 "four" 4'] })
})

test('what a gateway had goes to the next one without the values that have no order: the first may have given them to their owners long ago', () => {
  const { stream, carry, take, pass } = running(['a', 'b'])
  carry('7', 'doc:1', 'old')
  carry('7', 'doc:2', 'old', 3)
  carry('7', 'doc:3', 'old')
  expect(take('a')?.keys).toEqual(['doc:1 "old" -'])
  stream.drop('a')
  expect(take('b')?.keys).toEqual(['doc:1'])
  pass(PATIENCE_MS)
  expect(take('b')?.keys).toEqual(['doc:1'])
})

test('the others say to the next one that they may be repeated', () => {
  const { stream, carry, take } = running(['a', 'b'])
  carry('7', 'doc:1', 'old', 3)
  expect(take('a')?.keys).toEqual(['doc:1 "old" 3'])
  stream.drop('a')
  expect(take('b')?.keys).toEqual(['doc:1 "old" 3 again'])
})

test('what a gateway was to have and was not sent goes to the next one as it is', () => {
  const { stream, carry, take } = running(['a', 'b'])
  carry('7', 'doc:1', 'new')
  stream.drop('a')
  expect(take('b')?.keys).toEqual(['doc:1 "new" -'])
})
