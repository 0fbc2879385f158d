import {
  type Answer,
  type Changed,
  changesKey,
  encodeChanged,
  FetcherUnavailable,
  type HandedOver,
  type Taken,
} from '@keycast/backbone'
import { createChanges } from './change-streams.ts'
import { createNamespaces } from './test-support.ts'

const KEY = changesKey('http://api/changes')
const stream = { changes: { url: 'http://api/changes', origin: 'http://api', pollMs: 0 } }

/** A backbone whose refreshes the test ends. */
function setup() {
  const watched: string[] = []
  const others: string[] = []
  const renewed: string[] = []
  const refreshes: { keys: string[]; done: () => void; fail: () => void }[] = []
  const handed: { value: HandedOver; done: (taken: Taken) => void }[] = []
  let timers: (() => void)[] = []
  const changes = createChanges({
    namespaces: createNamespaces({ doc: stream, list: stream, other: {} }).fetched,
    backbone: {
      watch: key => watched.push(key),
      renewWatch: key => renewed.push(key),
      handOver: value => new Promise(done => handed.push({ value, done })),
      refresh: keys =>
        new Promise((resolve, reject) => {
          refreshes.push({ keys, done: resolve, fail: () => reject(new FetcherUnavailable('away')) })
        }),
    },
    now: () => 0,
    after(_, run) {
      timers.push(run)
      return () => {}
    },
  })
  const events = changes.beside({
    held: key => {
      others.push(`held ${key}`)
      return undefined
    },
    onAnswer: ({ key }) => others.push(`answer ${key}`),
    credentials: () => undefined,
    payer: () => undefined,
  })
  return {
    changes,
    events,
    others,
    watched,
    renewed,
    refreshes,
    handed,
    held: () => events.held(KEY, 'watch'),
    answer(version: string, order: number, changed: Changed[]) {
      const body = encodeChanged(changed)
      const content = { contentType: 'application/json', format: 'json', store: false, maxAgeMs: 0, ageMs: 0 } as const
      const answer: Answer = { type: 'value', key: KEY, version, order, body, ...content }
      events.onAnswer(answer, false)
    },
    settle: () => new Promise(setImmediate),
    pass() {
      const due = timers
      timers = []
      for (const run of due) run()
    },
  }
}

test('a stream that namespaces share is watched once', () => {
  const { changes, watched } = setup()
  changes.start()
  expect(watched).toEqual([KEY])
})

test('the keys that it is handed are refreshed at all nodes, and then it says how far it is', async () => {
  const { answer, refreshes, held, renewed, settle } = setup()
  answer('7', 70, ['doc:1', 'list:2'])
  await settle()
  expect(refreshes[0].keys).toEqual(['doc:1', 'list:2'])
  await settle()
  expect([held(), renewed]).toEqual([undefined, []])
  refreshes[0].done()
  await settle()
  expect([held(), renewed]).toEqual([{ version: '7', order: 70, ageMs: 0 }, [KEY]])
})

test('a position without keys is kept for the next node', () => {
  const { answer, refreshes, held } = setup()
  answer('7', 70, [])
  expect([held(), refreshes]).toEqual([{ version: '7', order: 70, ageMs: 0 }, []])
})

test('nodes that were not all told are told again', async () => {
  const { answer, refreshes, held, settle, pass } = setup()
  answer('7', 70, ['doc:1'])
  await settle()
  refreshes[0].fail()
  await settle()
  pass()
  expect(refreshes[1].keys).toEqual(['doc:1'])
  refreshes[1].done()
  await settle()
  expect(held()).toMatchObject({ version: '7' })
})

test('what is handed out anew ends what was tried before, and so does the end of the gateway', async () => {
  const { answer, changes, refreshes, settle, pass } = setup()
  answer('7', 70, ['doc:1'])
  await settle()
  refreshes[0].fail()
  await settle()
  answer('7', 70, ['doc:1'])
  pass()
  await settle()
  expect(refreshes).toHaveLength(2)
  refreshes[1].fail()
  await settle()
  changes.stop()
  pass()
  expect(refreshes).toHaveLength(2)
})

test('a node that knows no streams does no harm', () => {
  const { events, held } = setup()
  events.onAnswer({ type: 'failed', key: KEY, code: 'bad_key', message: 'no', ageMs: 0 }, false)
  expect(held()).toBeUndefined()
})

test('keys are what they were', () => {
  const { events, others } = setup()
  events.held('doc:1', 'watch')
  events.onAnswer({ type: 'failed', key: 'doc:1', code: 'not_found', message: 'no', ageMs: 0 }, false)
  expect(others).toEqual(['held doc:1', 'answer doc:1'])
})

test('values go to their owners, and then keys are refreshed, with those whose value was not taken', async () => {
  const { answer, refreshes, handed, held, settle } = setup()
  const content = { version: 'v', contentType: 'application/json', format: 'json', body: Buffer.from('1') } as const
  const values: HandedOver[] = [
    { key: 'doc:1', content, rank: 7, isRepeated: true },
    { key: 'doc:2', content: undefined },
    { key: 'doc:3', content },
  ]
  answer('7', 70, ['doc:0', ...values])
  expect(handed.map(({ value }) => value)).toEqual(values)
  handed[0].done({ outcome: 'taken' })
  handed[1].done({ outcome: 'older', rank: 9 })
  await settle()
  expect(refreshes).toEqual([])
  handed[2].done({ code: 'fetcher_unavailable' })
  await settle()
  expect(refreshes[0].keys).toEqual(['doc:3', 'doc:0'])
  expect(held()).toBeUndefined()
  refreshes[0].done()
  await settle()
  expect(held()).toMatchObject({ version: '7' })
})
