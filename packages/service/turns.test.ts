import { createTurns, TURN_MS } from './turns.ts'

const turn = () => new Promise(setImmediate)

/** Work of `steps` steps that each take `ms`. */
function setup({ steps, ms }: { steps: number; ms: number }) {
  let at = 0
  let done = 0
  const work = createTurns({
    now: () => at,
    step() {
      done++
      at += ms
      return done < steps
    },
  })
  return { work, done: () => done }
}

test('work that is short is done in the next turn', async () => {
  const { work, done } = setup({ steps: 100, ms: 0.001 })
  work.start()
  work.start()
  expect(done()).toBe(0)
  await turn()
  expect(done()).toBe(100)
})

test('work that is long is done over as many turns as it needs, and then is over', async () => {
  const { work, done } = setup({ steps: 10 * TURN_MS, ms: 1 })
  work.start()
  for (let turns = 1; turns <= 10; turns++) {
    await turn()
    expect(done()).toBe(turns * TURN_MS)
  }
  await turn()
  expect(done()).toBe(10 * TURN_MS)
})

test('what is started from within a step begins after it', async () => {
  const seen = [] as string[]
  const work = createTurns({
    now: () => 0,
    step() {
      seen.push('step')
      if (seen.length === 1) work.start()
      return false
    },
  })
  work.start()
  await turn()
  await turn()
  await turn()
  expect(seen).toEqual(['step', 'step'])
})
