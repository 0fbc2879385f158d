import type { Answer } from '../backbone.ts'
import { roomsCodec } from '../wire/rooms-codec.ts'
import { valuesCodec } from '../wire/values-codec.ts'
import { type Account, CREDIT_BYTES, CREDIT_TOTAL_BYTES, createAnswers, createCredit } from './answers.ts'

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
  // As one text: jest takes half a second to compare the two lists.
  expect(keysSent().join() === keys.join()).toBe(true)
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
  // Fewer than are sent in a turn, and more: then the link is always due something.
  for (const toldEachTurn of [100, 500]) {
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

const MESSAGE_BYTES = 2 ** 16

/** Sends each account one message in turn, until none has room. */
function sendAll(accounts: Account[]) {
  const sent = new Map<Account, number>(accounts.map(account => [account, 0]))
  let open = accounts
  while (open.length > 0) {
    for (const account of open) {
      if (!account.hasRoom()) continue
      account.send(MESSAGE_BYTES)
      sent.set(account, (sent.get(account) ?? 0) + MESSAGE_BYTES)
    }
    open = open.filter(account => account.hasRoom())
  }
  return [...sent.values()]
}

const accountsOf = (credit: ReturnType<typeof createCredit>, count: number) =>
  Array.from({ length: count }, credit.open)

test('one gateway is sent its own credit, and goes on as it takes', () => {
  const credit = createCredit()
  const [account] = accountsOf(credit, 1)
  expect(sendAll([account])).toEqual([CREDIT_BYTES])
  account.take(MESSAGE_BYTES)
  expect(account.hasRoom()).toBe(true)
  expect(credit.bytes()).toBe(CREDIT_BYTES - MESSAGE_BYTES)
})

test('a hundred gateways that take nothing share what there is for all, and leave a share for the next', () => {
  const credit = createCredit()
  const shares = sendAll(accountsOf(credit, 100))
  expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(MESSAGE_BYTES)
  expect(credit.bytes()).toBeLessThanOrEqual(CREDIT_TOTAL_BYTES)
  expect(credit.bytes()).toBeGreaterThan(0.9 * CREDIT_TOTAL_BYTES)
  expect(sendAll(accountsOf(credit, 1))[0]).toBeGreaterThanOrEqual(4 * MESSAGE_BYTES)
})

test('gateways that stall one after the other leave something to each that comes later', () => {
  const credit = createCredit()
  for (const account of accountsOf(credit, 100)) sendAll([account])
  expect(credit.bytes()).toBeLessThanOrEqual(CREDIT_TOTAL_BYTES + 100 * MESSAGE_BYTES)
  const [late] = accountsOf(credit, 1)
  for (let messages = 1; messages <= 10; messages++) {
    expect(late.hasRoom()).toBe(true)
    sendAll([late])
    late.take(Number.MAX_SAFE_INTEGER)
  }
})

test('a gateway that is gone, or reports more than it was sent, gives back no more than it had', () => {
  const credit = createCredit()
  const [liar, leaver] = accountsOf(credit, 2)
  for (const account of [liar, leaver]) account.send(1_000)
  liar.take(5_000)
  liar.take(2_000)
  leaver.close()
  leaver.take(1_000)
  expect(credit.bytes()).toBe(0)
  liar.send(1_000)
  expect(credit.bytes()).toBe(1_000)
})

test('what is said of a thousand short messages counts, or rooms that are behind would have their gateway refuse the part', async () => {
  const heads: number[] = []
  const answers = createAnswers({
    codec: roomsCodec,
    answersFor(_, key) {
      const at = 1_700_000_000_000
      const said = { at, from: 'ann', messageId: 'm'.repeat(64), data: Buffer.from('1') }
      const messages = Array.from({ length: 1_000 }, (_, index) => ({ seq: index + 1, ...said }))
      return { answers: [{ type: 'messages' as const, key, epoch: 'E', messages }], more: false }
    },
    send: (_, parts) => void heads.push(parts[0].length),
    onFailed: () => {},
    turn: run => void setImmediate(run),
    now: () => 0,
  })
  const link = { id: 'L', received: 0, ...answers.open() }
  for (let room = 0; room < 16; room++) answers.tell(link, `room:${room}`)
  for (let turns = 0; turns < 20; turns++) await turn()
  expect(heads).toHaveLength(16)
  expect(Math.max(...heads)).toBeLessThan(2 ** 18)
})
