import { createConfirmed } from './values-backbone.ts'

function setup() {
  let at = 10_000
  const confirmed = createConfirmed({ now: () => at })
  const link = { id: 'first' }
  return { confirmed, link, pass: (ms: number) => (at += ms) }
}

test('keys of a namespace share what a beat confirms, and other namespaces do not', () => {
  const { confirmed, link } = setup()
  const one = confirmed.of(link, 'doc:1')

  confirmed.take(link, { doc: 300 })

  expect(confirmed.of(link, 'doc:2')).toBe(one)
  expect(one.untilMs).toBe(8_700)
  expect(confirmed.of(link, 'tick:1').untilMs).toBe(Number.NEGATIVE_INFINITY)
})

test('what was confirmed stays so: a later beat that lags behind takes nothing back', () => {
  const { confirmed, link, pass } = setup()
  confirmed.take(link, { doc: 100 })
  pass(1_000)

  confirmed.take(link, { doc: 5_000 })

  expect(confirmed.of(link, 'doc:1').untilMs).toBe(8_900)
})

test('a link that begins anew confirms nothing of what was said before', () => {
  const { confirmed, link } = setup()
  const before = confirmed.of(link, 'doc:1')

  link.id = 'second'
  confirmed.take(link, { doc: 0 })

  expect(before.untilMs).toBe(Number.NEGATIVE_INFINITY)
  expect(confirmed.of(link, 'doc:1').untilMs).toBe(9_000)
})

test('nor does another node', () => {
  const { confirmed, link } = setup()

  confirmed.take({ id: 'another' }, { doc: 0 })

  expect(confirmed.of(link, 'doc:1').untilMs).toBe(Number.NEGATIVE_INFINITY)
})

test('a refresh that is under way is not over, though the beat that says so took longer than the answer before it', () => {
  const { confirmed, link, pass } = setup()
  const dueAt = 10_000 + 5_000
  pass(5_000)
  pass(300)
  const beatTookMs = 40
  pass(beatTookMs)
  confirmed.take(link, { doc: 300 })

  expect(confirmed.of(link, 'doc:1').untilMs).toBeLessThan(dueAt)
})
