import { createOwnValueTokens } from './own-value-tokens.ts'

const setup = () => {
  const clock = { nowMs: 0 }
  const entry = { wireKey: 'own:inbox|ann', subscriptions: [{}] }
  const entries = new Map([[entry, { askedWith: 'former', refused: [] }]])
  const dropped: number[] = []
  const tokens = createOwnValueTokens({
    ownValues: { of: () => entries, hasNewToken: () => false } as any,
    cache: { update: () => dropped.push(clock.nowMs) },
    backbone: { renewWatch() {} },
    subscriptions: { changed() {} },
    now: () => clock.nowMs,
  })
  const viewer = { name: 'ann', tokens: [{ digest: 'latter', bearer: {} }] } as any
  return { clock, dropped, entries, tokens, viewer }
}

test('however often tokens of a viewer end, its values are looked through once a second, the last time after the last of them', () => {
  const { clock, dropped, tokens, viewer } = setup()
  for (; clock.nowMs < 3_000; clock.nowMs += 10) {
    tokens.expired(viewer)
    if (clock.nowMs % 250 === 0) tokens.sweep()
  }
  for (; clock.nowMs < 10_000; clock.nowMs += 250) tokens.sweep()
  expect(dropped).toEqual([0, 1_000, 2_000, 3_000])
})

test('a viewer that comes again has not lost a token of before', () => {
  const { clock, dropped, entries, tokens, viewer } = setup()
  tokens.expired(viewer)
  tokens.expired(viewer)
  tokens.ended(viewer)
  dropped.length = 0
  entries.clear()
  const again = new Map([
    [
      { wireKey: 'own:inbox|ann', subscriptions: [{}] },
      { askedWith: 'new', refused: [] },
    ],
  ])
  for (const [entry, choice] of again) entries.set(entry, choice)
  clock.nowMs = 5_000
  tokens.sweep()
  expect(dropped).toEqual([])
})
