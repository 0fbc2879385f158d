import { createTurns, TURN_MS, workTurn } from './turns.ts'

const turn = () => new Promise(setImmediate)

/** Work of `steps` steps that each take `ms`. */
function setup({ steps, ms }: { steps: number; ms: number }) {
  let at = 0
  let done = 0
  const work = createTurns({
    turn: run => void setImmediate(run),
    now: () => at,
    step() {
      done++
      at += ms
      return done < steps
    },
  })
  return { work, done: () => done }
}

test('a turn ends once it has taken its time, and says whether there is more', () => {
  let at = 0
  let done = 0
  const work = (ms: number, steps: number) => {
    done = 0
    return workTurn(
      () => at,
      () => {
        at += ms
        return ++done < steps
      },
    )
  }
  expect([work(0.001, 100), done]).toEqual([false, 100])
  expect([work(1, 100), done]).toEqual([true, TURN_MS])
  expect([work(100, 2), done]).toEqual([true, 1])
  expect([work(100, 1), done]).toEqual([false, 1])
})

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
    turn: run => void setImmediate(run),
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
