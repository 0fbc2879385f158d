import { createHistogram, merge } from '../histogram.ts'
import { createSchedule, type Due } from '../schedule.ts'
import { createTally } from '../tally.ts'
import type { Workload } from '../workload.ts'
import { counts, createWorkload, histograms } from './outage.ts'

afterEach(() => {
  jest.useRealTimers()
})

test('a ping that was due while its client was away goes out when it is back, and counts from when it was due', () => {
  jest.useFakeTimers({ now: 1_000_000 })
  const tally = createTally({ counts: [...counts], histograms })
  const settings = { dialect: 'keycast', intervalMs: 100, redialMs: 1 }
  const nowUs = () => Date.now() * 1_000
  const newSchedule = (intervalMs: number, onDue: Due<unknown>) =>
    createSchedule({ intervalMs, nowUs, onDue, onLate() {} })
  const options = { settings, tally, newSchedule, nowUs }
  const workload = createWorkload(options as any) as Required<Workload>
  let sent = 0
  const client = { send: () => sent++ } as any
  const letIn = () => {
    const behaves = workload.behaviour.open(client, 0, 0)
    behaves.onMessage('{"type":"welcome"', 17, 1, undefined)
    return behaves
  }
  const pong = (behaves: ReturnType<typeof letIn>) => behaves.onMessage('{"type":"pong","count":1}', 25, 1, undefined)

  const before = letIn()
  jest.advanceTimersByTime(100)
  pong(before)
  jest.advanceTimersByTime(100) // this one has no answer when the connection ends
  before.onEnd()
  jest.advanceTimersByTime(300)
  expect([sent, workload.outstanding()]).toEqual([2, 4])

  const after = letIn()
  expect(sent).toBe(2 + 4)
  jest.advanceTimersByTime(50)
  workload.stop()
  while (workload.outstanding() > 0) pong(after)

  expect(tally.counts).toMatchObject({ requested: tally.counts.answered, back: 1, lost: 0, unexpected: 0 })
  const took = createHistogram()
  merge(took, tally.take().histograms.outage)
  expect([took.totalCount, Math.round(took.maxValue / 1_000)]).toEqual([1, 350])
})
