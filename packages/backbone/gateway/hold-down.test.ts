import { createHoldDown, FORGIVEN_MS, HOLD_MS_MAX, HOLD_MS_MIN } from './hold-down.ts'

function setup() {
  let at = 10_000
  const holdDown = createHoldDown({ now: () => at })
  holdDown.onHeard()
  return {
    holdDown,
    pass(ms: number) {
      at += ms
    },
    /** The node is lost, and heard again at once. @returns how long it is held down */
    flap(): number {
      holdDown.onLost()
      holdDown.onHeard()
      return holdDown.heldMs()
    },
  }
}

test('a node that was never lost is not held down', () => {
  expect(setup().holdDown.heldMs()).toBe(0)
})

test('a node is held down from when it is heard again, longer after each loss, up to a minute', () => {
  const { holdDown, pass, flap } = setup()
  holdDown.onLost()
  pass(HOLD_MS_MIN)
  expect(holdDown.heldMs()).toBe(0)
  holdDown.onHeard()
  expect(holdDown.heldMs()).toBe(HOLD_MS_MIN)
  pass(HOLD_MS_MIN - 1)
  expect(holdDown.heldMs()).toBe(1)
  pass(1)
  expect(holdDown.heldMs()).toBe(0)

  const holds = Array.from({ length: 6 }, flap)
  expect(holds).toEqual([4_000, 8_000, 16_000, 32_000, HOLD_MS_MAX, HOLD_MS_MAX])
})

test.each([
  ['answered', ({ pass }: ReturnType<typeof setup>) => pass(FORGIVEN_MS)],
  [
    'was away',
    ({ holdDown, pass }: ReturnType<typeof setup>) => {
      holdDown.onLost()
      pass(FORGIVEN_MS)
      holdDown.onHeard()
      expect(holdDown.heldMs()).toBe(0)
    },
  ],
])('the losses of a node that %s for five minutes are forgiven', (_, rest) => {
  const given = setup()
  for (let losses = 0; losses < 5; losses++) given.flap()
  rest(given)
  expect(given.flap()).toBe(HOLD_MS_MIN)
})

test('a node that is forgiven is held down no longer, and its next loss counts as the first', () => {
  const { holdDown, flap } = setup()
  flap()
  flap()
  holdDown.forgive()
  expect(holdDown.heldMs()).toBe(0)
  expect(flap()).toBe(HOLD_MS_MIN)
})
