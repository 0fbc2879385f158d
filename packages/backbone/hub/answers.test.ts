import type { Answer } from '../backbone.ts'
import { valuesCodec } from '../wire/values-codec.ts'
import { createAnswers } from './answers.ts'

const turn = () => new Promise(setImmediate)

/** The time it takes to look up an answer, on the clock of these tests. */
const ANSWER_MS = 0.01

/** Answers to one link, on a clock of the test's. */
function setup() {
  let at = 0
  const messages: { answers: { key: string }[]; results?: { id: string }[] }[] = []
  const answers = createAnswers({
    codec: valuesCodec,
    answersFor(_, key) {
      at += ANSWER_MS
      const current: Answer = { type: 'current', key, version: 'v', ageMs: 0, maxAgeMs: 1, store: true }
      return { answers: [current], more: false }
    },
    send: (_, parts) => void messages.push(JSON.parse(parts[0].toString())),
    onFailed: () => {},
    turn: run => void setImmediate(run),
    now: () => at,
  })
  const link = { id: 'L', received: 0, ...answers.open() }
  return {
    answers,
    link,
    messages,
    /** Keys that were sent, in order. */
    keysSent: () => messages.flatMap(({ answers }) => answers.map(({ key }) => key)),
    /** The gateway reports that it took all of its answers. */
    take() {
      link.account.take(1e12)
      answers.resume(link)
    },
  }
}

const range = (count: number) => Array.from({ length: count }, (_, i) => `doc:${i}`)

test('100,000 keys that a link is due are sent over many turns, in the order told', async () => {
  const { answers, link, messages, keysSent, take } = setup()
  const keys = range(100_000)
  for (const key of keys) answers.tell(link, key)
  const sent = () => messages.reduce((sum, { answers }) => sum + answers.length, 0)
  for (let turns = 0, before = 0; before < keys.length; turns++) {
    take()
    await turn()
    const now = sent()
    expect(now - before).toBeLessThan(1_000)
    expect(turns).toBeLessThan(1_000)
    before = now
  }
  expect(keysSent()).toEqual(keys)
})

test('a key told again between two turns is sent once more, and a link closed between two turns nothing', async () => {
  const { answers, link, messages, keysSent, take } = setup()
  const keys = range(2_000)
  for (const key of keys) answers.tell(link, key)
  await turn()
  answers.tell(link, keys[0])
  answers.tell(link, keys.at(-1) ?? '')
  for (let turns = 0; turns < 10; turns++) {
    take()
    await turn()
  }
  expect(keysSent()).toEqual([...keys, keys[0]])

  for (const key of keys) answers.tell(link, key)
  await turn()
  answers.close(link)
  const before = messages.length
  for (let turns = 0; turns < 10; turns++) await turn()
  expect(messages).toHaveLength(before)
  expect(answers.bytesOut()).toBe(0)
})

test('a result follows what was told before it, also where new keys are told without end', async () => {
  for (const toldEachTurn of [100, 2_000]) {
    const { answers, link, messages, keysSent, take } = setup()
    const keys = range(5_000)
    for (const key of keys) answers.tell(link, key)
    answers.tellResult(link, { id: 'id-1', result: {} as never })
    for (let turns = 0; !messages.some(({ results }) => results); turns++) {
      for (let i = 0; i < toldEachTurn; i++) answers.tell(link, `new:${turns}-${i}`)
      take()
      await turn()
      expect(turns).toBeLessThan(1_000)
    }
    expect(keysSent().slice(0, keys.length)).toEqual(keys)
  }
})

test('once stopped, results still leave when asked for, and answers no more', async () => {
  const { answers, link, messages } = setup()
  answers.tell(link, 'doc:1')
  answers.tellResult(link, { id: 'id-1', result: {} as never })
  answers.stop()
  await turn()
  expect(messages).toEqual([])
  answers.sendResults(link)
  expect(messages).toMatchObject([{ answers: [], results: [{ id: 'id-1' }] }])
})
