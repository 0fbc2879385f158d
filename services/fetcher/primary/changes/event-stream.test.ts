import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EVENT_CHARACTERS_MAX, openEventStream, SILENT_MS, type StreamOptions } from './event-stream.ts'

const closes: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closes.splice(0)) await close()
})

type Told = ['up', boolean] | ['event', string | undefined, string] | ['down', string, number | undefined]

/** @param answer of the backend to each request for the stream, in order; the last one goes on */
async function setup(
  answer: ((response: ServerResponse) => unknown)[],
  { headersOf = () => ({ authorization: 'Bearer t' }), lastEventId }: Partial<StreamOptions> = {},
) {
  const asked: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    answer[Math.min(asked.length, answer.length - 1)](response)
    asked.push(request.headers)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const told: Told[] = []
  const pauses: number[] = []
  let clock = 0
  let turns = 0
  let wake = () => {}
  let timers: { ms: number; run: () => void }[] = []
  const tell = (...news: Told) => {
    told.push(news)
    wake()
  }
  const close = openEventStream({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/changes`,
    timeoutMs: 2_000,
    headersOf,
    lastEventId,
    onUp: isResumed => tell('up', isResumed),
    onEvent: ({ id, data }) => tell('event', id, data),
    onDown: (why, status) => tell('down', why, status),
    wallNow: Date.now,
    // Each look takes a millisecond.
    now: () => clock++,
    turn(run) {
      turns++
      setImmediate(run)
    },
    after(ms, run) {
      const timer = { ms, run }
      timers.push(timer)
      return () => {
        timers = timers.filter(each => each !== timer)
      }
    },
  })
  closes.push(close, () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return {
    asked,
    told,
    pauses,
    close,
    advance: (ms: number) => (clock += ms),
    timers: () => timers.map(({ ms }) => ms),
    turns: () => turns,
    /** Waits for so many pieces of news. */
    async until(count: number) {
      while (told.length < count) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
      return told
    },
    /** The only timer that runs is over. @returns its length */
    pass() {
      const [timer, ...others] = timers
      if (!timer || others.length > 0) throw new Error(`${timers.length} timers`)
      timers = []
      timer.run()
      return timer.ms
    },
  }
}

const head = { 'content-type': 'text/event-stream; charset=utf-8' }
const sending =
  (...texts: string[]) =>
  (response: ServerResponse) => {
    response.writeHead(200, head)
    for (const text of texts) response.write(text)
  }
const ending = (text: string) => (response: ServerResponse) => response.writeHead(200, head).end(text)

test('the stream is asked for with the credentials, and as what it is', async () => {
  const { asked, until } = await setup([sending('data: 1\n\n')])
  expect(await until(2)).toEqual([
    ['up', false],
    ['event', undefined, '1'],
  ])
  expect(asked[0]).toMatchObject({
    authorization: 'Bearer t',
    accept: 'text/event-stream',
    'accept-encoding': 'identity',
  })
  expect(asked[0]).not.toHaveProperty('last-event-id')
})

test('an event keeps the last id there was, and a stream that broke off is asked for from there', async () => {
  const { asked, until, pass } = await setup([
    ending('id: Zürich 7\ndata: a\n\ndata: b\n\ndata: not wh'),
    sending('data: c\n\n'),
  ])
  expect(await until(4)).toEqual([
    ['up', false],
    ['event', 'Zürich 7', 'a'],
    ['event', 'Zürich 7', 'b'],
    ['down', 'the backend ended it', undefined],
  ])
  expect(pass()).toBe(1_000)
  expect((await until(6)).slice(4)).toEqual([
    ['up', true],
    ['event', 'Zürich 7', 'c'],
  ])
  expect(Buffer.from(asked[1]['last-event-id'] as string, 'latin1').toString()).toBe('Zürich 7')
})

test('a flood is read in pieces, between which others have their turn, and no event is torn', async () => {
  const long = 'x'.repeat(100_000)
  const { until, turns } = await setup([sending(`data: ${long}\n\n${'unknown\n'.repeat(20_000)}\rdata: 2\n\n`)])
  expect((await until(3)).slice(1)).toEqual([
    ['event', undefined, long],
    ['event', undefined, '2'],
  ])
  expect(turns()).toBeGreaterThan(100)
})

test('an id of another node is where the first one begins', async () => {
  const { asked, until } = await setup([sending('\n')], { lastEventId: '41' })
  expect(await until(1)).toEqual([['up', true]])
  expect(asked[0]['last-event-id']).toBe('41')
})

test.each([
  ['is empty', 'id:'],
  ['was made up for the event', 'id: 3f0e8a52-6c1d-4b7e-9a35-0d2c4b6f8e11'],
  ['fits into no header', 'id: a\tb'],
  ['is longer than any that is kept', `id: ${'x'.repeat(1_025)}`],
])('an id that %s is none', async (_, line) => {
  const { until } = await setup([sending(`id: 1\ndata: a\n\n${line}\ndata: b\n\n`)])
  expect((await until(3)).slice(1)).toEqual([
    ['event', '1', 'a'],
    ['event', undefined, 'b'],
  ])
})

test('the backend says how long the pause is, within bounds', async () => {
  const { until, pass } = await setup([
    ending('id: 1\ndata: 1\nretry: 2500\n\n'),
    ending('retry: 0\n\n'),
    ending('retry: 999999999\n\n'),
  ])
  const pauses = []
  for (const count of [3, 5, 7]) {
    await until(count)
    pauses.push(pass())
  }
  expect(pauses).toEqual([2_500, 100, 300_000])
})

test('the pause grows while the stream cannot be opened, and is short again once one can be gone on with', async () => {
  const refuse = (response: ServerResponse) => response.writeHead(500).end()
  const { until, pass } = await setup([refuse, refuse, refuse, ending('id: 1\ndata: 1\n\n'), refuse])
  const pauses = []
  for (const count of [1, 2, 3, 6, 7]) {
    await until(count)
    pauses.push(pass())
  }
  expect(pauses).toEqual([1_000, 2_000, 4_000, 1_000, 2_000])
})

test('the pause grows where each stream ends at once and begins anew, and is short again after one that lasted', async () => {
  const { until, pass, advance } = await setup([
    ending('data: 1\n\n'),
    ending(''),
    ending('retry: 100\n\n'),
    sending(''),
  ])
  const pauses = []
  for (const count of [3, 5, 7]) {
    await until(count)
    pauses.push(pass())
  }
  await until(8)
  advance(30_000)
  expect(pass()).toBe(SILENT_MS)
  await until(9)
  expect([...pauses, pass()]).toEqual([1_000, 2_000, 400, 100])
})

test('a stream may begin with a byte order mark', async () => {
  const { until } = await setup([sending('\uFEFFid: 1\ndata: a\n\n')])
  expect((await until(2))[1]).toEqual(['event', '1', 'a'])
})

test('a backend that asks for patience has it', async () => {
  const { until, pass } = await setup([response => response.writeHead(429, { 'retry-after': '20' }).end()])
  expect(await until(1)).toEqual([['down', 'the backend answered 429', 429]])
  expect(pass()).toBe(20_000)
})

test.each([
  ['no stream', (response: ServerResponse) => response.writeHead(204).end(), 'the backend answered 204'],
  [
    'a redirect',
    (response: ServerResponse) => response.writeHead(302, { location: '/' }).end(),
    'the backend answered 302',
  ],
  [
    'another type',
    (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    'the backend answered with another type than text/event-stream',
  ],
  [
    'compressed bytes',
    (response: ServerResponse) => response.writeHead(200, { ...head, 'content-encoding': 'gzip' }).end(),
    'the events are in an encoding that was not asked for',
  ],
  ['a reset', (response: ServerResponse) => response.destroy(), 'the connection failed (ECONNRESET)'],
])('a backend that answers with %s is asked again', async (_, answer, why) => {
  const { until, pass } = await setup([answer])
  expect((await until(1))[0].slice(0, 2)).toEqual(['down', why])
  pass()
  expect((await until(2))[1].slice(0, 2)).toEqual(['down', why])
})

test.each([
  ['one line', `data: ${'x'.repeat(EVENT_CHARACTERS_MAX)}`],
  ['many lines', 'data: x\n'.repeat(EVENT_CHARACTERS_MAX)],
])('an event that never ends, of %s, ends the stream, which does not begin with it again', async (_, text) => {
  const { until, asked, pass } = await setup([sending(`id: a\ndata: 1\n\n${text}`), sending('data: 2\n\n')])
  expect((await until(3))[2]).toEqual(['down', 'an event is too long', undefined])
  pass()
  expect((await until(4))[3]).toEqual(['up', false])
  expect(asked[1]['last-event-id']).toBeUndefined()
})

test('a stream in which nothing comes, not even a comment, is opened anew', async () => {
  const { until, pass } = await setup([sending(': hello\n\ndata: 1\n\n')])
  await until(2)
  expect(pass()).toBe(SILENT_MS)
  expect((await until(3))[2]).toEqual(['down', 'nothing came for 60 s, not even a comment', undefined])
})

test('a stream whose first event is long in coming stays open', async () => {
  const { until, pass } = await setup([response => response.writeHead(200, head).flushHeaders()])
  await until(1)
  expect(pass()).toBe(SILENT_MS)
})

test('a backend that does not answer in time is asked again', async () => {
  const { until, pass } = await setup([() => {}])
  expect(pass()).toBe(2_000)
  expect(await until(1)).toEqual([['down', 'no answer within 2000 ms', undefined]])
})

test('without a token nobody is asked', async () => {
  const { until, asked } = await setup([sending('data: 1\n\n')], { headersOf: () => undefined })
  expect(await until(1)).toEqual([['down', 'there is no token for it yet', undefined]])
  expect(asked).toEqual([])
})

test('a stream that was closed tells nothing more, and asks nobody', async () => {
  const { until, close, timers, told } = await setup([sending('data: 1\n\n')])
  await until(2)
  close()
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  expect([told.length, timers()]).toEqual([2, []])
})
