import { randomNumbers } from '../../../../test/support/random.js'
import { Bearer } from './bearer.ts'
import { chooseToken, hasNewToken, hasTokenLeft, newTokenChoice, noteRefused } from './token-choice.ts'
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
  const names = new Map<string, string>()
  /** A token comes. */
  const come = (name: string, expiresAtMs: number) => {
    const bearer = new Bearer(name)
    names.set(bearer.digest, name)
    const verified = { user: 'ann', viewer: 'ann', expiresAtMs, bearer, rights: {} as any, issuedAt: 0, jti: name }
    return viewers.enter(verified) as Viewer
  }
  const viewer = come('first', 1_000)
  const nameOf = (digest: string | undefined) => names.get(digest ?? '')
  return {
    viewer,
    viewers,
    come,
    events,
    pass: (ms: number) => {
      nowMs += ms
    },
    now: () => nowMs,
    /** The choice for one key. */
    key() {
      const choice = newTokenChoice()
      return {
        choice,
        choose: () => nameOf(chooseToken(viewer, choice, nowMs)?.digest),
        refuse: (name: string = nameOf(choice.askedWith) ?? '') =>
          noteRefused(viewer, choice, nowMs, new Bearer(name).digest),
        hasNew: () => hasNewToken(viewer, choice, nowMs),
        hasLeft: () => hasTokenLeft(viewer, choice, nowMs),
      }
    },
  }
}

test('the token valid longest is chosen, then those that were not refused for this key, and then all anew', () => {
  const { come, key } = setup()
  come('short', 500)
  come('long', 2_000)
  const [refused, other] = [key(), key()]
  expect([refused.choose(), refused.refuse()]).toEqual(['long', true])
  expect([refused.choose(), refused.refuse()]).toEqual(['first', true])
  expect([refused.choose(), refused.refuse()]).toEqual(['short', false])
  expect(refused.hasNew()).toBe(false)
  expect(refused.choose()).toBe('long')
  expect(other.choose()).toBe('long')
})

test('a token that comes is new only where it would be chosen, and one that was chosen is not', () => {
  const { come, key } = setup()
  const [admitted, refused] = [key(), key()]
  for (const { choose } of [admitted, refused]) choose()
  refused.refuse()
  expect([admitted.hasNew(), refused.hasNew()]).toEqual([false, false])
  come('short', 500)
  expect([admitted.hasNew(), refused.hasNew()]).toEqual([false, true])
  come('long', 2_000)
  expect([admitted.hasNew(), refused.hasNew()]).toEqual([true, true])
})

test('a refusal of a token that was chosen before is one of that token', () => {
  const { come, key } = setup()
  const { choose, refuse } = key()
  choose()
  come('long', 2_000)
  expect(choose()).toBe('long')
  expect(refuse('first')).toBe(true)
  expect(choose()).toBe('long')
})

test('once the token in the place of a refused one has expired, the refused one is asked with anew', () => {
  const { come, key, pass, events, viewers } = setup()
  come('short', 500)
  const { choose, refuse, hasLeft } = key()
  choose()
  refuse()
  expect(choose()).toBe('short')
  expect(hasLeft()).toBe(false)
  pass(500)
  expect(hasLeft()).toBe(true)
  viewers.sweep()
  expect(events).toEqual(['renewed', 'expired'])
  expect([choose(), hasLeft()]).toEqual(['first', false])
  pass(500)
  expect([hasLeft(), choose()]).toEqual([false, undefined])
})

test('the four tokens that are valid longest are asked with, and a key remembers refusals of no others', () => {
  const { come, key } = setup()
  const { choose, refuse, choice } = key()
  for (let number = 1; number <= 50; number++) {
    come(`later ${number}`, 1_000 + number)
    choose()
    refuse()
  }
  expect(choice.refused).toHaveLength(4)
  const asked = [choose(), refuse(), choose(), refuse(), choose(), refuse(), choose(), refuse()]
  expect(asked.filter(each => typeof each === 'string')).toEqual(['later 50', 'later 49', 'later 48', 'later 47'])
  expect(asked.at(-1)).toBe(false)
})

test('whatever tokens come and end, a key that one of them is good for is not refused, and none is asked with twice', () => {
  const random = randomNumbers(11)
  const upTo = (max: number) => Math.floor(random() * max)
  for (let run = 0; run < 100; run++) {
    const { come, key, pass, viewers, viewer, now } = setup()
    const keys = Array.from({ length: 3 }, key)
    /** Of every pair of token and key. */
    const grants = new Map<string, boolean>()
    const isGood = (token: string, index: number) => {
      const pair = `${token} ${index}`
      if (!grants.has(pair)) grants.set(pair, random() < 0.4)
      return grants.get(pair) === true
    }
    for (let step = 0; step < 20; step++) {
      if (random() < 0.5) come(`t${run}-${step}`, now() + upTo(300))
      pass(upTo(50))
      if (random() < 0.3) viewers.sweep()
      const index = upTo(keys.length)
      const { choose, refuse } = keys[index]
      const valid = viewer.tokens.filter(({ expiresAtMs }) => expiresAtMs > now()).slice(0, 4)
      const isGranted = valid.some(({ jti }) => isGood(jti ?? '', index))
      const askedWith: (string | undefined)[] = []
      let isAdmitted = false
      for (let hasOther = true; hasOther && !isAdmitted; ) {
        const token = choose()
        askedWith.push(token)
        isAdmitted = token !== undefined && isGood(token, index)
        hasOther = token !== undefined && !isAdmitted && refuse()
      }
      expect(isAdmitted).toBe(isGranted)
      expect(new Set(askedWith).size).toBe(askedWith.length)
    }
  }
})
