import { findBottleneck } from './bottleneck.ts'

const load = ({
  busiest = 0.3,
  late = 1,
  server = 0.3,
  machine = 0.4,
}: {
  busiest?: number
  late?: number
  server?: number
  machine?: number
}) => ({
  generator: { busiest, lateMsP99: late, cpuMs: busiest * 1_000 },
  cpuBusyRatio: machine,
  seconds: 1,
  services: [{ role: 'gateway', cpuMs: server * 1_000 }],
})

test.each([
  ['nobody', {}, 'neither'],
  ['a busy service', { server: 0.98 }, 'system'],
  ['a busy generator', { busiest: 0.97 }, 'generator'],
  ['a generator that is late', { late: 400 }, 'generator'],
  ['a machine without a free core', { machine: 1 }, 'machine'],
  ['both', { busiest: 0.97, server: 0.98 }, 'both'],
])('%s at the limit is named', (_, state, limiter) => {
  expect(findBottleneck([load(state), load(state)], 2).limiter).toBe(limiter)
})

test('one late second among many is no limit', () => {
  const loads = Array.from({ length: 20 }, () => load({}))
  loads.push(load({ late: 900 }))

  expect(findBottleneck(loads, 2).limiter).toBe('neither')
})

test('it is said loudly when the generator was the limit', () => {
  expect(findBottleneck([load({ busiest: 1 })], 2).text).toContain('THE GENERATOR WAS THE LIMIT')
})

test('it is said when other programs had the machine', () => {
  expect(findBottleneck([load({ machine: 1 })], 2).text).toContain('Other programs')
  expect(findBottleneck([load({ machine: 0.4 })], 2).text).not.toContain('Other programs')
})

test('what nobody watched is not said to have been idle', () => {
  expect(findBottleneck([{ ...load({}), services: [] }], 2).text).toContain('services not watched')
})
