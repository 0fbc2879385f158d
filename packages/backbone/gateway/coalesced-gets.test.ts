import { createCoalesced } from './coalesced-gets.ts'

function setup() {
  let at = 0
  let check: (() => void) | undefined
  const asked: string[] = []
  const coalesced = createCoalesced<string>({
    get: key => asked.push(`get ${key}`),
    cancelGet: key => asked.push(`cancel ${key}`),
    unanswered: () => 'nothing',
    now: () => at,
    every: (_, run) => {
      check = run
      return () => {
        check = undefined
      }
    },
  })
  const pass = (ms: number) => {
    at += ms
    check?.()
  }
  return { coalesced, asked, pass, isChecking: () => check !== undefined }
}

test('calls for one key share one get, and its answer', async () => {
  const { coalesced, asked, isChecking } = setup()
  const calls = [coalesced.call('a', { deadlineMs: 100 }), coalesced.call('a', { deadlineMs: 200 })]
  expect(asked).toEqual(['get a'])

  coalesced.end('a', 'answer')

  expect(await Promise.all(calls)).toEqual(['answer', 'answer'])
  expect(isChecking()).toBe(false)
})

test('a call waits no longer than it said, and the get goes on for the others', async () => {
  const { coalesced, asked, pass } = setup()
  const short = coalesced.call('a', { deadlineMs: 100 })
  const long = coalesced.call('a', { deadlineMs: 200 })

  pass(100)
  expect(await short).toBe('nothing')
  expect(asked).toEqual(['get a'])

  pass(100)
  expect(await long).toBe('nothing')
  expect(asked).toEqual(['get a', 'cancel a'])
})

test('a call that comes after the answer asks again', async () => {
  const { coalesced, asked } = setup()
  void coalesced.call('a', { deadlineMs: 100 })
  coalesced.end('a', 'answer')

  void coalesced.call('a', { deadlineMs: 100 })

  expect(asked).toEqual(['get a', 'get a'])
})

test('when it stops, nobody waits on', async () => {
  const { coalesced, isChecking } = setup()
  const call = coalesced.call('a', { deadlineMs: 100 })

  coalesced.stop()

  expect(await call).toBe('nothing')
  expect(isChecking()).toBe(false)
})
