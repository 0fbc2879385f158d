import type { Workload } from '../workload.ts'
import { clientsFor, createWorkload, shareOf } from './watch.ts'

const settings = { keys: 2_500, perSession: 1_000, gateways: 2, key: 'text:' }

test('the clients of each gateway share all keys, and no key twice', () => {
  const clients = Array.from({ length: clientsFor(settings) }, (_, number) => number)

  for (const gateway of [0, 1]) {
    const shares = clients.filter(number => number % 2 === gateway).map(number => shareOf(settings, number))
    expect(shares).toEqual([
      { from: 0, to: 1_000 },
      { from: 1_000, to: 2_000 },
      { from: 2_000, to: 2_500 },
    ])
  }
})

test('a client asks for its next keys once it has a value of each, or an error', () => {
  const tally = { counts: {}, histograms: {}, because() {} } as any
  for (const name of ['requested', 'first', 'values', 'refusals', 'bodyBytes', 'subscribed']) tally.counts[name] = 0
  const options = { settings: { ...settings, perSession: 1_500 }, tally } as any
  const workload = createWorkload(options) as Required<Workload>
  let sent = 0
  const client = { send: () => sent++ } as any
  const { onMessage } = workload.behaviour.open(client, 0, 0)

  onMessage('{"type":"welcome"', 0, 1, undefined)
  for (let count = 0; count < 999; count++) onMessage('{"type":"value"', 200, 1, undefined)
  expect([sent, workload.outstanding()]).toEqual([1, 1])
  onMessage('{"type":"error","code":"capacity"', 0, 1, undefined)
  expect(sent).toBe(2)
  for (let count = 0; count < 500; count++) onMessage('{"type":"value"', 200, 1, undefined)

  expect([sent, workload.outstanding(), tally.counts.requested, tally.counts.first]).toEqual([2, 0, 1_500, 1_500])
})
