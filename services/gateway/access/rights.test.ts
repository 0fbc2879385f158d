import { createRights, decide } from './rights.ts'
import { readRule, type Verb } from './rule.ts'

const rule = (written: unknown, { user = true, strict = true }: { user?: boolean; strict?: boolean } = {}) => {
  const read = readRule(written, { user, strict })
  if (read.problems.length > 0) throw new Error(read.problems[0].problem)
  return read.rule
}

const setup = ({ anonymous = {}, everyone = {} }: { anonymous?: unknown; everyone?: unknown } = {}) =>
  createRights({ anonymous: rule(anonymous), everyone: rule(everyone) })

test('where nothing is granted, nothing is allowed', () => {
  const rights = setup()
  expect(rights.anonymousMayAct).toBe(false)
  expect(decide(rights.anonymous, 'read', 'room:7')).toMatchObject({ code: 'unauthenticated' })
  expect(decide(rights.of('ann'), 'read', 'room:7')).toMatchObject({ code: 'forbidden' })
})

test('rights add up: those of anyone, of everyone with a token, and of the token', () => {
  const rights = setup({ anonymous: { read: ['tick:*'] }, everyone: { read: ['user:{sub}', 'all:*'] } })
  const ann = rights.of('ann', rule({ read: ['room:7'] }))
  for (const key of ['tick:1', 'user:ann', 'all:x', 'room:7']) expect(decide(ann, 'read', key)).toBeUndefined()
  for (const key of ['user:bob', 'room:8']) expect(decide(ann, 'read', key)).toMatchObject({ code: 'forbidden' })

  expect(rights.anonymousMayAct).toBe(true)
  expect(decide(rights.anonymous, 'read', 'tick:1')).toBeUndefined()
  expect(decide(rights.anonymous, 'read', 'all:x')).toMatchObject({ code: 'unauthenticated' })
})

test('a verb grants itself and no other', () => {
  const ann = setup().of('ann', rule({ publish: ['room:7'], join: ['room:8'] }))
  expect(decide(ann, 'publish', 'room:7')).toBeUndefined()
  expect(decide(ann, 'join', 'room:8')).toBeUndefined()
  for (const verb of ['read', 'join'] as const) expect(decide(ann, verb, 'room:7')?.code).toBe('forbidden')
})

test('{sub} in a token stands for its user, too', () => {
  const ann = setup().of('a|b', rule({ read: ['user:{sub}/**'] }))
  expect(decide(ann, 'read', 'user:a~7Cb/inbox')).toBeUndefined()
})

test('a refusal tells the client nothing of the key', () => {
  const ann = setup({ everyone: { read: ['all:*'] } }).of('ann')
  const refusal = decide(ann, 'read', 'room:7')
  expect(refusal?.message).not.toContain('room')
  expect(decide(ann, 'read', 'tick:1/2')).toEqual(refusal)
})

test('5,000 keys are judged against 1,000 patterns one by one, each as it should be', () => {
  const exact = Array.from({ length: 500 }, (_, n) => `room:${n}`)
  const wild = Array.from({ length: 500 }, (_, n) => `user:${n}/*`)
  const ann = setup().of('ann', rule({ read: [...exact, ...wild] }))
  const allowed = (key: (n: number) => string) =>
    Array.from({ length: 2_500 }, (_, n) => decide(ann, 'read', key(n))).filter(refusal => !refusal).length
  expect(allowed(n => `room:${n}`)).toBe(500)
  expect(allowed(n => `user:${n}/x`)).toBe(500)
})

test.each([
  ['a text', 'room:*', [], 'must map read, history, members, publish or join to patterns'],
  ['a list', ['room:*'], [], 'must map read'],
  ['a verb that is none', { raed: ['room:*'] }, ['raed'], 'the rights are read, history, members, publish, join'],
  ['a pattern in place of a list', { read: 'room:*' }, ['read'], 'must be a list of patterns'],
  ['a pattern that is none', { read: ['room:*', 'room'] }, ['read', 1], '"room" has no namespace'],
  ['more than 1,000 patterns', { read: Array(1_001).fill('a:*') }, [], 'has 1001 patterns: at most 1000'],
  [
    'more than 1,000 of all verbs',
    { read: Array(900).fill('a:*'), join: Array(101).fill('a:*') },
    [],
    'has 1001 patterns',
  ],
])('%s is refused, with the place', (_, written, path, why) => {
  const { problems } = readRule(written, { user: true, strict: true })
  expect(problems).toEqual([{ path, problem: expect.stringContaining(why) }])
})

test('1,000 patterns are taken, and in a token a verb of the future is passed over', () => {
  const written = { read: Array(1_000).fill('a:*'), dance: 7 }
  expect(readRule(written, { user: true, strict: false })).toMatchObject({ problems: [], rule: { publish: [] } })
})

test('read grants history and members, too; where the policy names one, only those whom it is granted have it', () => {
  const { rule: everyone } = readRule({ read: ['room:1'], history: ['room:2'] }, { user: true, strict: true })
  const { rule: anonymous } = readRule({}, { user: false, strict: true })
  const may = (byRead: readonly Verb[] | undefined, verb: Verb) => {
    const rights = createRights({ anonymous, everyone, byRead }).of('ann')
    return ['room:1', 'room:2'].filter(key => !decide(rights, verb, key))
  }
  expect(may(undefined, 'history')).toEqual(['room:1', 'room:2'])
  expect(may(undefined, 'members')).toEqual(['room:1'])
  expect(may([], 'history')).toEqual(['room:2'])
  expect(may([], 'members')).toEqual([])
  for (const byRead of [undefined, []]) expect(may(byRead, 'read')).toEqual(['room:1'])
})
