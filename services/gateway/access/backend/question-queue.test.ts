import { DEADLINE_MS } from '../../../../test/support/deadline.ts'
import { createQuestionQueue } from './question-queue.ts'
import type { Decision } from './verdicts.ts'

function setup({ hasToken = true }: { hasToken?: boolean } = {}) {
  /** Sent and not yet answered, in order. */
  const sent: { key: string; resolve: (answer: string) => void }[] = []
  const concluded: string[] = []
  const state = { hasToken }
  let at = 0
  const queue = createQuestionQueue({
    ask: ({ key }) => (state.hasToken ? new Promise(resolve => sent.push({ key, resolve })) : undefined),
    conclude: ({ key }, answer) => concluded.push(`${key} ${answer}`),
    turn: run => void setImmediate(run),
    // Each look at the clock takes a while.
    now: () => at++ / 10,
  })
  const viewers = { ann: {} as any, bob: {} as any }
  return {
    ...queue,
    add: (decision: Decision, lane = 'one') => queue.add(decision, [lane]),
    state,
    sent,
    concluded,
    decision: (key: string, viewer: 'ann' | 'bob' = 'ann'): Decision => ({ key, viewer: viewers[viewer] }) as any,
    /** The first question is answered. */
    async answer() {
      sent.shift()?.resolve('admitted')
      await turn()
    },
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

const keysOf = (questions: { key: string }[]) => questions.map(({ key }) => key)

test('of one viewer 64 questions are under way, the others follow in order; another viewer does not wait for them', async () => {
  const { add, decision, sent, answer, concluded } = setup()
  for (let i = 0; i < 70; i++) add(decision(`doc:${i}`))
  expect(sent).toHaveLength(64)
  add(decision('doc:1', 'bob'))
  expect(sent.splice(64)).toMatchObject([{ key: 'doc:1' }])
  await answer()
  await answer()
  expect(concluded).toEqual(['doc:0 admitted', 'doc:1 admitted'])
  expect(keysOf(sent.slice(62))).toEqual(['doc:64', 'doc:65'])
})

test('a question that nobody waits for any more is never sent', async () => {
  const { add, cancel, decision, sent, answer } = setup()
  const all = Array.from({ length: 67 }, (_, i) => decision(`doc:${i}`))
  for (const each of all) add(each)
  expect([all[0], all[64], all[65], all[65]].map(cancel)).toEqual([false, true, true, false])
  await answer()
  expect(sent.at(-1)?.key).toBe('doc:66')
})

test('however many wait when a token ends, each is concluded, and later ones are sent', async () => {
  const { add, decision, sent, answer, concluded, state } = setup()
  for (let i = 0; i < 50_000; i++) add(decision(`doc:${i}`))
  state.hasToken = false
  while (sent.length > 0) await answer()
  for (const endsAt = performance.now() + DEADLINE_MS; concluded.length < 50_000; await turn()) {
    expect(performance.now()).toBeLessThan(endsAt)
  }
  expect(new Set(concluded).size).toBe(50_000)
  expect(concluded.filter(each => each.endsWith(' undefined'))).toHaveLength(50_000 - 64)
  state.hasToken = true
  for (let i = 0; i < 70; i++) add(decision(`doc:${i}`))
  expect(sent).toHaveLength(64)
})

test('a question that cannot be sent is concluded later, never while it is asked, and other work has its turns', async () => {
  const { add, cancel, decision, concluded } = setup({ hasToken: false })
  const [first, ...others] = Array.from({ length: 20_000 }, (_, i) => decision(`doc:${i}`))
  for (const each of [first, ...others]) add(each)
  expect(concluded).toEqual([])
  expect(cancel(first)).toBe(false)
  let turns = 0
  // Each turn has room for 20 steps.
  for (; turns < 10_000 && concluded.length < 20_000; turns++) await turn()
  expect(concluded).toHaveLength(20_000)
  expect(turns).toBeGreaterThan(100)
})

test('accounts of one viewer take turns, also where both wait for the same', async () => {
  const { add, coalesce, decision, sent, answer } = setup()
  const all = Array.from({ length: 100 }, (_, i) => decision(`doc:${i}`))
  for (const each of all) add(each, 'busy')
  add(decision('doc:front-page'), 'visitor')
  coalesce(all[99], ['visitor'])
  coalesce(all[0], ['visitor'])
  for (let i = 0; i < 4; i++) await answer()
  expect(keysOf(sent.slice(60))).toEqual(['doc:64', 'doc:front-page', 'doc:65', 'doc:99'])
})
