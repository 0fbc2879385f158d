import { createHash } from 'node:crypto'
import { type Credentials, type Decision, viewerKey } from '@keycast/backbone'
import { type Namespaces, realWorld } from '@keycast/service'
import { type Ask, createQuestions } from '../questions/questions.ts'
import { authorizeQuestions, createAuthorize } from './authorize.ts'

const viewerOf = (user: string) => createHash('sha256').update(user).digest('base64url')
const ANN = viewerKey('doc:1', viewerOf('ann'))
const tokenOf = (user: string, expiresAt = 1_000) => ({ authorization: `Bearer ${user}`, expiresAt })

function setup({
  cap = 10,
  credit = 1_000,
  queuedMax,
  keptMax,
  sharesBackend = false,
}: {
  cap?: number
  credit?: number
  queuedMax?: number
  keptMax?: number
  sharesBackend?: boolean
} = {}) {
  let at = 1_000_000
  const now = () => at
  const origins = { doc: 'http://rights', other: sharesBackend ? 'http://rights' : 'http://other', open: undefined }
  const asking = (origin: string) => ({
    origin,
    pattern: `${origin}/{id}`,
    urlFor: (id: string) => `${origin}/${id}`,
    method: 'HEAD',
    keepMs: 10_000,
    keepRefusedMs: 2_000,
  })
  const deciding = Object.entries(origins).map(([name, origin]) => {
    const authorize = origin === undefined ? undefined : asking(origin)
    return [name, { timeoutMs: 2_000, authorize }] as const
  })
  const byName: Map<string, { timeoutMs: number; authorize: object | undefined }> = new Map(deciding)
  const namespaces = {
    names: Object.keys(origins),
    get: (name: string) => byName.get(name),
  } as unknown as Namespaces
  const leased: { ask: Ask; message: any }[] = []
  const logged: unknown[][] = []
  const nobody: unknown[][] = []
  const counted: Record<string, number> = {}
  const count = (what: string) => {
    counted[what] = (counted[what] ?? 0) + 1
  }
  const kind = authorizeQuestions(namespaces)
  const questions = createQuestions({
    kind: { ...kind, queuedMax: queuedMax ?? kind.queuedMax },
    pool: { hasCredit: () => leased.length < credit, lease: (_, ask: any, message) => leased.push({ ask, message }) },
    cap,
    inTurns: step => {
      while (step());
    },
    metrics: { asked: (_, verdict) => count(verdict) },
    failureLog: {
      failed: ({ name, origin }, { code, status }) => logged.push([name, origin, code, status]),
      succeeded() {},
      troubles: new Map(),
    },
    now,
    after: realWorld.after,
  })
  const told: { link: string; id: string; decision: Decision }[] = []
  const { onCommand, kept } = createAuthorize({
    namespaces,
    questions,
    tellDecision: (link, id, decision) => told.push({ link, id, decision }),
    logNobody: ({ name, origin }, { status }) => nobody.push([name, origin, status]),
    metrics: { questioned: count },
    now,
    random: () => 1,
    keptMax,
  })
  let nextId = 0
  return {
    counted,
    logged,
    nobody,
    leased,
    kept,
    told,
    questions,
    ask: (key: string, credentials: Credentials & { maxAgeMs?: number } = tokenOf('ann'), link = 'a', payer?: string) =>
      onCommand(link, String(++nextId), { key, ...credentials }, undefined, payer),
    /** The backend answers what it was asked first. */
    answer(status: number, retryAfterMs?: number) {
      const first = leased.shift() as (typeof leased)[number]
      questions.ended(first.ask, { kind: 'status', status, retryAfterMs }, undefined)
    },
    fail() {
      const first = leased.shift() as (typeof leased)[number]
      questions.ended(
        first.ask,
        { kind: 'failed', code: 'backend_unreachable', message: 'the connection failed' },
        undefined,
      )
    },
    lose: () => {
      const first = leased.shift() as (typeof leased)[number]
      questions.lost(first.ask)
      questions.startAll()
    },
    /** The decisions since the last call, as in `a admitted 0`. */
    decided: () => told.splice(0).map(({ link, decision: { verdict, ageMs } }) => [link, verdict, ageMs].join(' ')),
    pass: (ms: number) => {
      at += ms
    },
    /** Another keycast.yaml has another backend asked. */
    move: (origin: string) => Object.assign(byName.get('doc') as object, { authorize: asking(origin) }),
  }
}

test('the backend is asked with the token of the viewer and nothing else', () => {
  const { ask, leased } = setup()
  ask(ANN)
  expect(leased[0].message).toEqual({
    key: ANN,
    url: 'http://rights/1',
    headers: { authorization: 'Bearer ann' },
    timeoutMs: 2_000,
    bytesMax: 0,
    delta: false,
    statusOf: 'HEAD',
  })
})

test('viewers without a token are asked for without one, even where one comes along', () => {
  const { ask, leased } = setup()
  ask(viewerKey('doc:1', 'anonymous'), tokenOf('ann'))
  expect(leased[0].message.headers).toEqual({})
})

test.each([
  ['doc:1', 'names no viewer'],
  [viewerKey('doc:../1', viewerOf('ann')), 'names no viewer'],
  [viewerKey('open:1', viewerOf('ann')), 'another configuration'],
  [viewerKey('none:1', viewerOf('ann')), 'another configuration'],
  [viewerKey('doc:1/2', viewerOf('ann')), 'another configuration'],
])('about %s nobody is asked, and nobody admitted', (key, why) => {
  const { ask, leased, told } = setup()
  ask(key)
  expect(leased).toEqual([])
  expect(told[0].decision).toMatchObject({ verdict: 'failed', message: expect.stringContaining(why) })
})

test('a user without a token is never asked for as anybody', () => {
  const { ask, leased, told } = setup()
  ask(ANN, {})
  expect(leased).toEqual([])
  expect(told[0].decision).toMatchObject({ verdict: 'failed', message: 'the question brings no token' })
})

test.each([
  [200, 'admitted'],
  [204, 'admitted'],
  [401, 'refused'],
  [403, 'refused'],
  [404, 'refused'],
])('%i: %s, which is kept for all gateways until the time is over', (status, verdict) => {
  const { ask, answer, decided, leased, pass, counted } = setup()
  ask(ANN)
  ask(ANN, tokenOf('ann'), 'b')
  pass(5)
  answer(status)
  expect(decided()).toEqual([`a ${verdict} 5`, `b ${verdict} 5`])
  const keptMs = verdict === 'admitted' ? 10_000 : 2_000
  pass(keptMs - 6)
  ask(ANN, tokenOf('ann'), 'b')
  expect(decided()).toEqual([`b ${verdict} ${keptMs - 1}`])
  expect(leased).toEqual([])
  pass(1)
  ask(ANN)
  expect(leased).toHaveLength(1)
  expect(counted).toEqual({ asked: 2, coalesced: 1, memory: 1, [verdict]: 1 })
})

test('a URL at which the backend answers 404 is logged, until somebody was admitted by it', () => {
  const { ask, answer, nobody } = setup()
  const asked = (user: string, status: number) => {
    ask(viewerKey('doc:1', viewerOf(user)), tokenOf(user))
    answer(status)
  }
  asked('ann', 404)
  asked('bob', 404)
  asked('eve', 403)
  expect(nobody).toEqual(Array(2).fill(['doc', 'http://rights/{id}', 404]))
  asked('kim', 204)
  asked('joe', 404)
  expect(nobody).toHaveLength(2)
})

test.each([301, 400, 429, 500, 503])('%i says nothing: the question failed', status => {
  const { ask, answer, told, leased, logged, pass } = setup()
  ask(ANN)
  answer(status)
  expect(logged).toEqual([['doc', 'http://rights', 'backend_error', status]])
  expect(told[0].decision).toMatchObject({ verdict: 'failed', ageMs: undefined, retryAfterMs: 1_000 })
  expect(told[0].decision.message).toContain(String(status))
  ask(ANN)
  expect(leased).toEqual([])
  pass(1_000)
  ask(ANN)
  expect(leased).toHaveLength(1)
})

test('a failed question comes with how long ago the viewer was admitted, unless it was refused since', () => {
  const { ask, answer, fail, decided, pass } = setup()
  ask(ANN)
  answer(200)
  pass(10_000)
  ask(ANN)
  fail()
  expect(decided()).toEqual(['a admitted 0', 'a failed 10000'])
  pass(1_000)
  ask(ANN)
  answer(403)
  pass(10_000)
  ask(ANN)
  fail()
  expect(decided()).toEqual(['a refused 0', 'a failed '])
})

test('the Retry-After of a backend holds, up to a minute', () => {
  const { ask, answer, told } = setup()
  ask(ANN)
  answer(503, 30_000)
  expect(told[0].decision.retryAfterMs).toBe(30_000)
  ask(viewerKey('doc:2', viewerOf('ann')))
  answer(503, 3_600_000)
  expect(told[1].decision.retryAfterMs).toBe(60_000)
})

test('a viewer who was refused is asked for again with another token, though it expires sooner', () => {
  const { ask, answer, decided, leased } = setup()
  ask(ANN, tokenOf('revoked', 1_000))
  answer(401)
  ask(ANN, tokenOf('revoked', 1_000))
  expect(leased).toEqual([])
  ask(ANN, tokenOf('other', 500))
  expect(leased).toHaveLength(1)
  answer(200)
  expect(decided()).toEqual(['a refused 0', 'a refused 0', 'a admitted 0'])
})

test('of several tokens that are refused each is asked with once, for all gateways, until that is over', () => {
  const { ask, answer, leased, decided, pass } = setup()
  const both = (link: string) => {
    for (const user of ['phone', 'laptop']) {
      ask(ANN, tokenOf(user), link)
      if (leased.length > 0) answer(403)
      pass(500)
    }
  }
  both('a')
  expect(decided()).toEqual(['a refused 0', 'a refused 0'])
  both('b')
  expect(leased).toEqual([])
  expect(decided()).toEqual(['b refused 1000', 'b refused 1000'])
  pass(1_000)
  ask(ANN, tokenOf('phone'))
  expect(leased).toHaveLength(1)
  answer(200)
  ask(ANN, tokenOf('laptop'))
  expect(decided()).toEqual(['a admitted 0', 'a admitted 0'])
})

test('what one token is refused is not said of another that came meanwhile', () => {
  const { ask, answer, decided, leased } = setup()
  ask(ANN, tokenOf('revoked'))
  ask(ANN, tokenOf('revoked'), 'b')
  ask(ANN, tokenOf('other'), 'c')
  answer(401)
  expect(decided()).toEqual(['a refused 0', 'b refused 0'])
  expect(leased[0].message.headers).toEqual({ authorization: 'Bearer other' })
  answer(200)
  expect(decided()).toEqual(['c admitted 0'])
})

test('a token that waited for the answer to another is told a failure, not that refusal, where it cannot be asked with', () => {
  const { ask, answer, fail, leased, decided } = setup({ cap: 100 })
  ask(ANN, tokenOf('revoked'), 'a')
  const [revoked] = leased.splice(0)
  ask(ANN, tokenOf('good'), 'b')
  ask(ANN, tokenOf('good'), 'c')
  // The backend's breaker opens.
  for (let n = 2; n <= 21; n++) ask(viewerKey(`doc:${n}`, viewerOf(`user ${n}`)))
  while (leased.length > 0) fail()
  decided()
  leased.push(revoked)
  answer(401)
  expect(decided()).toEqual(['a refused 0', 'b failed ', 'c failed '])
})

test('a question that comes after a revocation is not answered with what the backend said, or was asked, before it', () => {
  const { ask, answer, leased, decided, pass } = setup()
  ask(ANN, tokenOf('stolen'))
  answer(200)
  pass(3_000)
  ask(ANN, tokenOf('new'))
  ask(ANN, { ...tokenOf('new'), maxAgeMs: 4_000 })
  expect(decided()).toEqual(['a admitted 0', 'a admitted 3000', 'a admitted 3000'])
  ask(ANN, { ...tokenOf('new'), maxAgeMs: 2_000 })
  expect(leased.map(({ message }) => message.headers.authorization)).toEqual(['Bearer new'])
  answer(403)

  ask(viewerKey('doc:2', viewerOf('ann')), tokenOf('stolen'))
  pass(1_000)
  ask(viewerKey('doc:2', viewerOf('ann')), { ...tokenOf('new'), maxAgeMs: 500 }, 'b')
  answer(200)
  expect(decided()).toEqual(['a refused 0', 'a admitted 1000'])
  expect(leased.map(({ message }) => message.headers.authorization)).toEqual(['Bearer new'])
  answer(404)
  expect(decided()).toEqual(['b refused 0'])
})

test('who waits while keycast.yaml changes is told what the next backend says, and not the one before', () => {
  const { ask, move, leased, answer, decided } = setup()
  ask(ANN)
  move('http://next')
  ask(ANN, tokenOf('ann'), 'b')
  answer(204)
  expect(decided()).toEqual([])
  expect(leased.map(({ message }) => message.url)).toEqual(['http://next/1'])
  answer(403)
  expect(decided()).toEqual(['a refused 0', 'b refused 0'])
})

test('where the backend cannot be asked after a revocation, nobody is told of admissions before it', () => {
  const { ask, answer, fail, decided, pass } = setup()
  ask(ANN, tokenOf('stolen'))
  answer(200)
  pass(3_000)
  ask(ANN, { ...tokenOf('new'), maxAgeMs: 0 })
  fail()
  ask(ANN, { ...tokenOf('new'), maxAgeMs: 2_000 })
  ask(ANN, tokenOf('other'))
  expect(decided()).toEqual(['a admitted 0', 'a failed ', 'a failed ', 'a failed 3000'])
})

test('no more are in flight to one backend than allowed, and another backend does not wait for it', () => {
  const { ask, leased, answer } = setup({ cap: 2 })
  for (let i = 0; i < 4; i++) ask(viewerKey(`doc:${i}`, viewerOf('ann')))
  ask(viewerKey('other:1', viewerOf('ann')))
  expect(leased.map(({ message }) => message.url)).toEqual(['http://rights/0', 'http://rights/1', 'http://other/1'])
  answer(200)
  expect(leased.at(-1)?.message.url).toBe('http://rights/2')
})

test('where too many wait, further ones are told so at once', () => {
  const { ask, told } = setup({ cap: 1, queuedMax: 4 })
  for (let i = 0; i < 4; i++) ask(viewerKey(`doc:${i}`, viewerOf('ann')))
  expect(told.map(({ decision }) => decision.message)).toEqual([
    'too many wait for the backend to be asked whether this may be read',
  ])
})

test('one finds a place where nobody waits, though with many namespaces a share of each is less than one', () => {
  const { ask, told, leased } = setup({ cap: 2, queuedMax: 4 })
  for (const number of [1, 2, 3, 4]) ask(viewerKey(`doc:${number}`, viewerOf('ann')), tokenOf('ann'), 'a', 'a1.u1')
  expect(leased.map(({ message }) => message.url)).toEqual(['http://rights/1', 'http://rights/2'])
  expect(told).toHaveLength(1)
})

test('a slow backend has no questions to another one refused', () => {
  const { ask, told, leased, questions } = setup({ cap: 1, queuedMax: 4 })
  for (let i = 0; i < 10; i++) ask(viewerKey(`doc:${i}`, viewerOf('ann')))
  expect(questions.levels.queued()).toBe(2)
  told.length = 0
  for (let i = 0; i < 3; i++) ask(viewerKey(`other:${i}`, viewerOf('ann')))
  expect(told).toEqual([])
  expect(leased.map(({ message }) => message.url)).toEqual(['http://rights/0', 'http://other/0'])
})

test('a question that was queued for longer than its gateway waits is not asked: those that somebody waits for are', () => {
  const { ask, told, leased, answer, pass } = setup({ cap: 1 })
  for (let i = 0; i < 3; i++) ask(viewerKey(`doc:${i}`, viewerOf('ann')))
  pass(4_000)
  ask(viewerKey('doc:new', viewerOf('ann')))
  answer(200)
  expect(leased.map(({ message }) => message.url)).toEqual(['http://rights/1'])
  pass(1)
  answer(200)
  expect(leased.map(({ message }) => message.url)).toEqual(['http://rights/new'])
  expect(told.map(({ decision }) => decision.verdict)).toEqual(['admitted', 'admitted', 'failed'])
  expect(told[2].decision).toMatchObject({ message: expect.stringContaining('too slowly'), retryAfterMs: 1_000 })
})

test('a question whose worker was lost goes to another one first, once', () => {
  const { ask, lose, leased, told } = setup({ cap: 1 })
  ask(ANN)
  ask(viewerKey('doc:2', viewerOf('ann')))
  lose()
  expect(leased.map(({ message }) => message.url)).toEqual(['http://rights/1'])
  lose()
  expect(told[0].decision).toMatchObject({ verdict: 'failed', message: expect.stringContaining('two workers') })
  expect(leased.map(({ message }) => message.url)).toEqual(['http://rights/2'])
})

test('a backend that fails all the time is asked once a second, until it answers', () => {
  const { ask, fail, answer, leased, told, pass } = setup({ cap: 1 })
  for (let i = 0; i < 30; i++) ask(viewerKey('doc:1', viewerOf(`user ${i}`)))
  for (let i = 0; i < 20; i++) fail()
  expect(told).toHaveLength(30)
  expect(told.at(-1)?.decision.message).toContain('circuit breaker')
  ask(viewerKey('doc:100', viewerOf('ann')))
  expect(leased).toEqual([])
  pass(1_000)
  ask(viewerKey('doc:101', viewerOf('ann')))
  ask(viewerKey('doc:102', viewerOf('ann')))
  expect(leased).toHaveLength(1)
  answer(403)
  ask(viewerKey('doc:103', viewerOf('ann')))
  expect(leased).toHaveLength(1)
})

test.each([405, 501])('a backend that answers HEAD with %i is asked by GET, then and from then on', status => {
  const { ask, answer, leased, told } = setup()
  ask(ANN)
  answer(status)
  expect(told).toEqual([])
  expect(leased.map(({ message }) => message.statusOf)).toEqual(['GET'])
  answer(200)
  expect(told[0].decision.verdict).toBe('admitted')

  ask(viewerKey('doc:2', viewerOf('ann')))
  expect(leased.map(({ message }) => message.statusOf)).toEqual(['GET'])
  answer(405)
  expect(told[1].decision.verdict).toBe('failed')
})

test('one viewer whose questions all fail keeps no other viewer out', () => {
  const { ask, fail, answer, leased, told } = setup({ cap: 100 })
  for (let i = 0; i < 40; i++) ask(viewerKey(`doc:${i}`, viewerOf('ann')))
  while (leased.length > 0) fail()
  told.length = 0

  ask(viewerKey('doc:1', viewerOf('bob')))
  answer(200)

  expect(told[0].decision.verdict).toBe('admitted')
})

test('a namespace whose questions fail keeps nobody out of another of the same backend', () => {
  const { ask, fail, answer, leased, told } = setup({ cap: 100, sharesBackend: true })
  for (let i = 0; i < 40; i++) ask(viewerKey('doc:1', viewerOf(`user ${i}`)))
  while (leased.length > 0) fail()
  told.length = 0

  ask(viewerKey('doc:1', viewerOf('bob')))
  ask(viewerKey('other:1', viewerOf('bob')))
  answer(200)

  expect(told.map(({ decision }) => decision.verdict)).toEqual(['failed', 'admitted'])
})

test('decisions are kept within a bound: the oldest go, never one under way', () => {
  const { ask, answer, kept, leased } = setup({ keptMax: 3, cap: 100 })
  for (let i = 0; i < 3; i++) ask(viewerKey(`doc:${i}`, viewerOf('ann')))
  answer(200)
  answer(200)
  for (let i = 3; i < 6; i++) ask(viewerKey(`doc:${i}`, viewerOf('ann')))
  expect(leased).toHaveLength(4)
  expect(kept()).toBe(4)
})
