import { createBreaker, PROBE_MS, type Verdict } from './breaker.ts'

function setup() {
  let at = 50_000
  const breaker = createBreaker({ now: () => at })
  const tries = (verdict: Verdict, count = 1) => {
    let change
    for (let i = 0; i < count; i++) change = breaker.end(verdict, breaker.start()) ?? change
    return change
  }
  return {
    breaker,
    tries,
    pass: (ms: number) => {
      at += ms
    },
    opened: () => {
      expect(tries('bad', 20)).toBe('opened')
    },
  }
}

test('nineteen failures are too few to open it, the twentieth opens it', () => {
  const { breaker, tries } = setup()
  expect(tries('bad', 19)).toBeUndefined()
  expect(breaker.admits()).toBe(true)
  expect(tries('bad')).toBe('opened')
  expect(breaker.isOpen()).toBe(true)
  expect(breaker.admits()).toBe(false)
})

test('it opens at half, not below', () => {
  const { tries } = setup()
  tries('good', 50)
  expect(tries('bad', 49)).toBeUndefined()
  expect(tries('bad')).toBe('opened')
})

test('failures older than ten seconds do not count, however little was asked since', () => {
  const { tries, pass } = setup()
  tries('bad', 19)
  pass(10_000)
  expect(tries('bad', 19)).toBeUndefined()
  pass(3_600_000)
  expect(tries('bad', 19)).toBeUndefined()
  pass(8_900)
  expect(tries('bad')).toBe('opened')
})

test('what is the key’s own fault never counts', () => {
  const { breaker, tries } = setup()
  expect(tries('neutral', 1_000)).toBeUndefined()
  expect(tries('bad', 19)).toBeUndefined()
  expect(tries('void', 1_000)).toBeUndefined()
  expect(breaker.isOpen()).toBe(false)
  // Nor does it hide failures.
  expect(tries('bad')).toBe('opened')
})

test('a second after it opened one probe is let through, and no more while that one is under way', () => {
  const { breaker, opened, pass } = setup()
  opened()
  pass(PROBE_MS - 1)
  expect(breaker.admits()).toBe(false)
  pass(1)
  expect(breaker.admits()).toBe(true)
  expect(breaker.start()).toBe(true)
  expect(breaker.admits()).toBe(false)
  pass(60_000)
  expect(breaker.admits()).toBe(false)
})

test.each(['good', 'neutral'] as const)('a probe that ends %s closes it, and nothing is held against it', verdict => {
  const { breaker, opened, pass, tries } = setup()
  opened()
  pass(PROBE_MS)
  expect(breaker.end(verdict, breaker.start())).toBe('closed')
  expect(breaker.admits()).toBe(true)
  expect(tries('bad', 19)).toBeUndefined()
})

test.each(['bad', 'void'] as const)(
  'after a probe that ends %s the next one goes out a second after it began',
  verdict => {
    const { breaker, opened, pass } = setup()
    opened()
    pass(PROBE_MS)
    const probe = breaker.start()
    pass(400)
    expect(breaker.end(verdict, probe)).toBeUndefined()
    expect(breaker.admits()).toBe(false)
    pass(600)
    expect(breaker.admits()).toBe(true)
  },
)

test('tries that began before it opened neither close it nor keep the probe back', () => {
  const { breaker, opened, pass, tries } = setup()
  const early = breaker.start()
  opened()
  expect(breaker.end('good', early)).toBeUndefined()
  expect(breaker.isOpen()).toBe(true)
  pass(PROBE_MS)
  const probe = breaker.start()
  expect(breaker.end('bad', early)).toBeUndefined()
  expect(breaker.admits()).toBe(false)
  expect(breaker.end('good', probe)).toBe('closed')
  expect(tries('bad', 19)).toBeUndefined()
})
