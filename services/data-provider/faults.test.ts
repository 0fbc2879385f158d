import { createFaults } from './faults.ts'

const none = { latencyMs: 0, jitterMs: 0, hangRate: 0, errorRate: 0, garbageRate: 0 }

/** @param numbers what chance says, in order */
const setup = (settings: Partial<typeof none>, numbers: number[] = []) =>
  createFaults({ ...none, ...settings }, () => numbers.shift() ?? 0)

test('without faults nothing goes wrong, however unlucky', () => {
  expect(setup({}).draw()).toEqual({ delayMs: 0, fault: 'none' })
})

test('jitter comes on top of latency', () => {
  expect(setup({ latencyMs: 100, jitterMs: 50 }, [0.5]).draw().delayMs).toBe(125)
})

test.each([
  ['hang', [0, 0.09]],
  ['error', [0, 0.1, 0.19]],
  ['garbage', [0, 0.1, 0.2, 0.29]],
  ['none', [0, 0.1, 0.2, 0.3]],
] as const)('each rate has its own draw: %s', (fault, numbers) => {
  const faults = setup({ hangRate: 0.1, errorRate: 0.2, garbageRate: 0.3 }, [...numbers])
  expect(faults.draw().fault).toBe(fault)
})

test('a rate of 1 means always', () => {
  expect(setup({ errorRate: 1 }, [0.99, 0.99, 0.999_999]).draw().fault).toBe('error')
})

test('faults change while running, those not given stay', () => {
  const faults = setup({ latencyMs: 10 })
  expect(faults.change({ errorRate: 1 })).toBeUndefined()
  expect(faults.current()).toEqual({ ...none, latencyMs: 10, errorRate: 1 })
})

test.each([
  [{ errorRate: 2 }, 'errorRate must be'],
  [{ errorRate: -0.1 }, 'errorRate must be'],
  [{ latencyMs: '5' }, 'latencyMs must be'],
  [{ latencyMs: null }, 'latencyMs must be'],
  [{ eroorRate: 1 }, 'eroorRate is no fault'],
  [{ constructor: 1 }, 'constructor is no fault'],
  [null, 'JSON object'],
])('%j is refused and changes nothing', (given, why) => {
  const faults = setup({})
  expect(faults.change(given === null ? null : { hangRate: 1, ...given })).toContain(why)
  expect(faults.current()).toEqual(none)
})
