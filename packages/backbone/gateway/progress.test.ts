import { createProgress } from './progress.ts'

function setup() {
  let at = 100_000
  const progress = createProgress({ now: () => at })
  return {
    progress,
    pass: (ms: number) => {
      at += ms
    },
    /** The node beats, and does not hear one of the requests. */
    beat: (hasHeardMore = false) => progress.onBeat({ hasHeardMore, isAllHeard: false }),
  }
}

test('a loss of requests tells against a node once it has heard nothing for 2 s, a full socket once for 3 s', () => {
  const { progress, pass, beat } = setup()
  beat()
  pass(1_999)
  expect(progress.onRequestLost()).toBe(false)
  pass(1)
  expect(progress.onRequestLost()).toBe(true)
  expect(progress.onNoRoom()).toBe(false)
  pass(1_000)
  expect(progress.onNoRoom()).toBe(true)
  expect(progress.isUnheard()).toBe(false)
  pass(6_000)
  expect(progress.isUnheard()).toBe(true)
})

test('whatever the node hears, or that it has heard everything, counts from the start again', () => {
  for (const heard of [
    { hasHeardMore: true, isAllHeard: false },
    { hasHeardMore: false, isAllHeard: true },
  ]) {
    const { progress, pass, beat } = setup()
    beat()
    pass(9_000)
    progress.onBeat(heard)
    expect([progress.onRequestLost(), progress.onNoRoom(), progress.isUnheard()]).toEqual([false, false, false])
    beat()
    pass(1_000)
    expect(progress.onRequestLost()).toBe(false)
  }
})

test('answers lost now and then, or long apart, tell nothing against a node', () => {
  const { progress, pass } = setup()
  for (let losses = 0; losses < 5; losses++) {
    expect(progress.onAnswersLost()).toBe(false)
    pass(1_000)
    progress.onAnswers()
    pass(1_000)
  }
  for (let losses = 0; losses < 5; losses++) {
    expect(progress.onAnswersLost()).toBe(false)
    pass(60_000)
  }
})

test('a node that was given up proves itself by what was asked of it', () => {
  const { progress, beat } = setup()
  progress.demand()
  beat()
  progress.onAnswers()
  expect(progress.proof).toEqual({ key: undefined })
  beat(true)
  expect(progress.proof).toBeUndefined()

  progress.demand('a:1')
  beat(true)
  expect(progress.proof).toEqual({ key: 'a:1' })
  progress.onAnswers()
  expect(progress.proof).toBeUndefined()
})

test('a node that owes an answer is tried again after a minute without a loss', () => {
  const { progress, pass, beat } = setup()
  progress.onAnswersLost()
  progress.demand('a:1')
  for (let losses = 0; losses < 100; losses++) {
    pass(1_000)
    beat(true)
    expect(progress.proof).toEqual({ key: 'a:1' })
    progress.onAnswersLost()
  }
  pass(60_000)
  beat()
  expect(progress.proof).toBeUndefined()
})
