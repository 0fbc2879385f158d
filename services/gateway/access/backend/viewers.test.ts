// How long a viewer's tokens are kept.
import { Bearer } from './bearer.ts'
import { chooseToken, newTokenChoice } from './token-choice.ts'
import { createViewers, type Viewer } from './viewers.ts'

function setup() {
  let nowMs = 0
  const events: string[] = []
  const viewers = createViewers({
    isNeeded: true,
    onForgotten: () => events.push('forgotten'),
    onRenewed: () => events.push('renewed'),
    onExpired: () => events.push('expired'),
    now: () => nowMs,
    wallNow: () => nowMs,
  })
  const token = (jti: string, expiresAtMs = 1_000) => ({
    user: 'ann',
    viewer: 'ann',
    expiresAtMs,
    bearer: new Bearer(jti),
    rights: {} as any,
    issuedAt: 0,
    jti,
  })
  const enter = (of: ReturnType<typeof token>) => viewers.enter(of) as Viewer
  const chosen = (viewer: Viewer) => chooseToken(viewer, newTokenChoice(), nowMs)?.jti
  const pass = (ms: number) => {
    nowMs += ms
    viewers.sweep()
  }
  return { viewers, events, token, enter, chosen, pass }
}

test('a token is asked with while a session or a request uses it, and its secret is kept no longer', () => {
  const { viewers, token, enter, chosen } = setup()
  const [long, short] = [token('long', 2_000), token('short')]
  const viewer = enter(long)
  enter(long)
  enter(short)
  viewers.leave(viewer, long)
  expect(chosen(viewer)).toBe('long')
  viewers.leave(viewer, long)
  expect(chosen(viewer)).toBe('short')
  viewers.leave(viewer, short)
  expect(chosen(viewer)).toBeUndefined()
  expect(viewer.tokens.map(({ bearer }) => bearer)).toEqual([undefined, undefined])
})

test('a viewer whose next token is another is reported, and one whose choice stays is not', () => {
  const { viewers, events, token, enter } = setup()
  const [long, short, other] = [token('long', 2_000), token('short'), token('other', 500)]
  const viewer = enter(short)
  enter(other)
  expect(events.splice(0)).toEqual(['renewed'])
  enter(long)
  expect(events.splice(0)).toEqual(['renewed'])
  viewers.leave(viewer, long)
  expect(events).toEqual(['renewed'])
})

test('a viewer that nobody uses is known until its tokens have expired, and what it was told with them is good', () => {
  const { viewers, events, token, enter, chosen, pass } = setup()
  const verified = token('one')
  const viewer = enter(verified)
  viewers.leave(viewer, verified)
  pass(999)
  expect(viewers.named('ann')).toBe(viewer)
  expect(enter(verified)).toBe(viewer)
  expect(chosen(viewer)).toBe('one')
  viewers.leave(viewer, verified)
  pass(1)
  expect(viewers.named('ann')).toBeUndefined()
  expect(events.at(-1)).toBe('forgotten')
})

test('a revocation of a token that nobody uses any more ends what was had with it', () => {
  const { viewers, events, token, enter } = setup()
  const verified = token('one')
  viewers.leave(enter(verified), verified)
  events.length = 0
  viewers.revoke(({ jti }) => jti === 'other', [])
  expect(events).toEqual([])
  viewers.revoke(({ jti }) => jti === 'one', [])
  expect(events).toEqual(['forgotten'])
})

test('of tokens that nobody uses the four valid longest are known', () => {
  const { viewers, events, token, enter } = setup()
  const viewer = enter(token('used', 10))
  for (let n = 1; n <= 5; n++) viewers.leave(enter(token(`${n}`, n * 100)), token(`${n}`, n * 100))
  expect(viewer.tokens.map(({ jti }) => jti)).toEqual(['5', '4', '3', '2', 'used'])
  expect(events.filter(event => event === 'expired')).toHaveLength(1)
})
