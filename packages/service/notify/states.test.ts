import type { Notify } from '../namespaces/notify-schema.ts'
import type { Outcome } from './post.ts'
import { AGAIN_MS, createStatesTeller } from './states.ts'
import { createTestWorld, failed, refused, taken } from './test-world.ts'

interface State {
  rev: number
  count: number
}

function setup({ lingerMs = 0 } = {}) {
  const time = createTestWorld()
  const calls: any[][] = []
  const backend: { answer: () => Outcome | Promise<Outcome> } = { answer: () => taken }
  const rooms = new Map<string, State>()
  const teller = createStatesTeller({
    ...time.world,
    what: 'members',
    lingerMs,
    *standing() {
      for (const [room, state] of rooms) yield state.count > 0 ? [room, () => state] : undefined
    },
    rulesOf: room => (room.startsWith('quiet:') ? undefined : ({} as Notify)),
    async post(_, body) {
      calls.push(JSON.parse(body).members)
      return backend.answer()
    },
    counts: { called: () => {} },
    report: { warn() {} } as any,
  })
  teller.start()
  function change(room: string, count: number, more: object = {}) {
    const state = { rev: (rooms.get(room)?.rev ?? 0) + 1, count, ...more }
    rooms.set(room, state)
    teller.changed(room, () => rooms.get(room))
  }
  const counts = () => calls.map(call => call.map(({ key, count }) => `${key} ${count}`))
  return { ...time, teller, calls, counts, backend, change }
}

test('rooms that change together are told in one call, as they are', async () => {
  const { change, settle, calls } = setup()
  const members = [{ id: 'x', user: 'ann', name: 'Ann', tabs: 1 }]
  change('room:1', 1, { members })
  change('room:2', 500)
  change('quiet:1', 1)
  await settle()
  expect(calls).toEqual([
    [
      { key: 'room:1', rev: 1, count: 1, members },
      { key: 'room:2', rev: 1, count: 500 },
    ],
  ])
})

test('while a call is under way, or a backend is down, the latest state takes the place of those before', async () => {
  const { change, settle, counts, backend, pass } = setup()
  let end: (outcome: Outcome) => void = () => {}
  backend.answer = () => new Promise(resolve => (end = resolve))
  change('room:1', 1)
  await settle()
  for (let count = 2; count < 50; count++) change('room:1', count)
  change('room:2', 1)
  backend.answer = () => failed
  end(failed)
  await pass(10_000)
  for (let count = 50; count < 90; count++) change('room:1', count)
  backend.answer = () => taken
  await pass(60_000)
  expect(counts()[0]).toEqual(['room:1 1'])
  expect(counts().at(-1)?.sort()).toEqual(['room:1 89', 'room:2 1'])
  expect(counts().length).toBeLessThan(20)
})

test('a call that lingers has all that changed meanwhile, each as it is then; what says nothing any more is left out', async () => {
  const { change, counts, pass, teller } = setup({ lingerMs: 250 })
  change('room:1', 1)
  teller.changed('room:2', () => undefined)
  await pass(249)
  expect(counts()).toEqual([])
  change('room:1', 0)
  change('room:3', 1)
  await pass(1)
  expect(counts()).toEqual([['room:1 0', 'room:3 1']])
  teller.changed('room:2', () => undefined)
  await pass(1_000)
  expect(counts()).toHaveLength(1)
})

test('a hundred thousand keys of which there is nothing to say any more are gone through in turns', async () => {
  const { change, counts, settle, teller, leap } = setup()
  let asked = 0
  for (let n = 0; n < 1_000; n++) {
    teller.changed(`room:${n}`, () => {
      asked++
      leap(1)
      return undefined
    })
  }
  change('room:last', 1)
  await settle()
  expect(asked).toBeGreaterThan(0)
  expect(asked).toBeLessThan(1_000)
  while (asked < 1_000) await settle()
  await settle()
  expect(counts()).toEqual([['room:last 1']])
})

test('a full call does not linger', async () => {
  const { change, calls, settle, pass } = setup({ lingerMs: 250 })
  for (let n = 0; n < 201; n++) change(`room:${n}`, 1)
  await pass(250)
  await settle()
  expect(calls.map(call => call.length)).toEqual([100, 100])
  await pass(250)
  expect(calls.at(-1)).toHaveLength(1)
})

test('once it is stopped, no call begins, not even one that lingers', async () => {
  const { change, calls, pass, teller } = setup({ lingerMs: 250 })
  change('room:1', 1)
  teller.stop()
  await pass(AGAIN_MS)
  expect(calls).toEqual([])
})

test('what a backend refuses is not told again, and goes on with the next change', async () => {
  const { change, settle, counts, backend, pass } = setup()
  backend.answer = () => refused
  change('room:1', 1)
  await pass(10_000)
  backend.answer = () => taken
  change('room:1', 2)
  await settle()
  expect(counts()).toEqual([['room:1 1'], ['room:1 2']])
})

test('rooms that have members are told again now and then, in calls of no more than a hundred', async () => {
  const { change, counts, calls, pass } = setup()
  for (let n = 0; n < 250; n++) change(`room:${n}`, 1)
  change('room:empty', 0)
  await pass(1_000)
  expect(calls.map(call => call.length)).toEqual([100, 100, 51])
  calls.length = 0
  await pass(AGAIN_MS)
  expect(counts().flat()).toHaveLength(250)
  expect(counts().flat()).not.toContain('room:empty 0')
})
