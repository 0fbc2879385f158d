import type { Namespaces, ServiceToken } from '@keycast/service'
import { createTokens } from './tokens.ts'

const FILE = { file: '/run/token' }
const ENDPOINT = { url: 'https://login/token', client: 'keycast', secret: 's3cret' }

/** @param of the namespaces' sources */
function setup(of: Record<string, ServiceToken | undefined>) {
  let at = 0
  const timers = new Set<{ dueAt: number; run: () => void }>()
  const logged: string[] = []
  const asked: unknown[] = []
  /** What a source gives, by the order in which it is asked; an error where it fails. */
  const given: (string | Error | { token: string; livesMs: number })[] = []
  const give = async (source: unknown): Promise<any> => {
    asked.push(source)
    const next = given.shift() ?? new Error('away')
    if (next instanceof Error) throw next
    return next
  }
  const settle = () => new Promise(resolve => setImmediate(resolve))
  const tokens = createTokens({
    namespaces: {
      get: (name: string) => (name in of ? { token: of[name] } : undefined),
      get names() {
        return Object.keys(of)
      },
    } as unknown as Namespaces,
    now: () => at,
    after(ms, run) {
      const timer = { dueAt: at + ms, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    log: {
      warn: (_: unknown, text?: string) => logged.push(`warn ${text}`),
      info: (_: unknown, text?: string) => logged.push(`info ${text}`),
    } as any,
    read: give,
    request: give,
  })
  return {
    tokens,
    given,
    asked,
    logged,
    timers,
    settle,
    async pass(ms: number) {
      const until = at + ms
      for (;;) {
        const due = [...timers].filter(({ dueAt }) => dueAt <= until).sort((a, b) => a.dueAt - b.dueAt)[0]
        if (!due) break
        at = due.dueAt
        timers.delete(due)
        due.run()
        await settle()
      }
      at = until
    },
  }
}

test('a namespace without a token needs none, and one that has none yet has to wait', async () => {
  const { tokens, given } = setup({ open: undefined, task: FILE })
  expect([tokens.authorizationOf('open'), tokens.authorizationOf('task')]).toEqual([undefined, null])
  given.push('first')
  await tokens.start()
  expect(tokens.authorizationOf('task')).toBe('Bearer first')
})

test('a file is read again, and a token that it held stands while it cannot be read', async () => {
  const { tokens, given, pass, logged } = setup({ task: FILE })
  given.push('first', 'second', new Error('EACCES'), new Error('EACCES'), 'third')
  await tokens.start()
  await pass(5_000)
  expect(tokens.authorizationOf('task')).toBe('Bearer second')
  await pass(5_000)
  await pass(1_000)
  expect(tokens.authorizationOf('task')).toBe('Bearer second')
  expect(logged).toEqual(['warn no new token for the backend'])
  await pass(2_000)
  expect(tokens.authorizationOf('task')).toBe('Bearer third')
  expect(logged.at(-1)).toBe('info the token for the backend was renewed')
})

test('an endpoint is asked again before its token expires, once for all namespaces that name it', async () => {
  const { tokens, given, asked, pass } = setup({
    task: ENDPOINT,
    note: { ...ENDPOINT },
    other: { ...ENDPOINT, scope: 'x' },
  })
  given.push(...['a', 'b', 'c', 'd'].map(token => ({ token, livesMs: 100_000 })))
  await tokens.start()
  expect(asked).toEqual([ENDPOINT, { ...ENDPOINT, scope: 'x' }])
  expect(['task', 'note', 'other'].map(tokens.authorizationOf)).toEqual(['Bearer a', 'Bearer a', 'Bearer b'])
  await pass(79_999)
  expect(asked).toHaveLength(2)
  await pass(1)
  expect(tokens.authorizationOf('note')).toBe('Bearer c')
})

test('a token that a backend refuses is renewed at once, and not more often than each 10 s', async () => {
  const { tokens, given, asked, pass, settle } = setup({ task: ENDPOINT })
  given.push(...['a', 'b', 'c'].map(token => ({ token, livesMs: 3_600_000 })))
  await tokens.start()
  tokens.refused('task')
  tokens.refused('task')
  await settle()
  expect(tokens.authorizationOf('task')).toBe('Bearer b')
  await pass(9_999)
  tokens.refused('task')
  await settle()
  expect(asked).toHaveLength(2)
  await pass(1)
  tokens.refused('task')
  await settle()
  expect(tokens.authorizationOf('task')).toBe('Bearer c')
  tokens.refused('open')
})

test('pauses grow while a source fails, up to a minute', async () => {
  const { tokens, asked, pass } = setup({ task: ENDPOINT })
  await tokens.start()
  await pass(63_000)
  expect(asked).toHaveLength(1 + 6)
  await pass(120_000)
  expect(asked).toHaveLength(1 + 6 + 2)
})

test('a start does not wait for a source that does not answer', async () => {
  const { tokens, pass, settle } = setup({ task: ENDPOINT })
  const late = tokens.start()
  await settle()
  await pass(5_000)
  await late
})

test('once stopped it asks nobody', async () => {
  const { tokens, given, timers } = setup({ task: FILE })
  given.push('first')
  await tokens.start()
  tokens.stop()
  expect(timers.size).toBe(0)
})

test('a token that another configuration needs is asked for before that is taken over', async () => {
  const of: Record<string, ServiceToken | undefined> = { task: FILE }
  const { tokens, given, asked, timers } = setup(of)
  given.push('one', { token: 'two', livesMs: 60_000 })
  await tokens.start()
  const next = { get: () => ({ token: ENDPOINT }), names: ['task'] } as unknown as Namespaces
  await tokens.prepare(next)
  expect(asked).toEqual([FILE.file, ENDPOINT])
  expect(tokens.authorizationOf('task')).toBe('Bearer one')
  of.task = ENDPOINT
  tokens.take()
  expect(tokens.authorizationOf('task')).toBe('Bearer two')
  // The file is read no more.
  expect(timers.size).toBe(1)
})

test('the backend of a namespace that is gone is not asked without a token, and again with one when it is back', async () => {
  const of: Record<string, ServiceToken | undefined> = { doc: FILE, page: undefined }
  const { tokens, given, settle } = setup(of)
  given.push('one')
  await tokens.start()
  delete of.doc
  tokens.take()
  tokens.take()
  expect(tokens.authorizationOf('doc')).toBeNull()
  tokens.refused('doc')
  of.doc = FILE
  given.push('two')
  await tokens.prepare({
    names: Object.keys(of),
    get: (name: string) => ({ token: of[name] }),
  } as unknown as Namespaces)
  tokens.take()
  await settle()
  expect([tokens.authorizationOf('doc'), tokens.authorizationOf('page')]).toEqual(['Bearer two', undefined])
  of.doc = undefined
  tokens.take()
  expect(tokens.authorizationOf('doc')).toBeUndefined()
})
