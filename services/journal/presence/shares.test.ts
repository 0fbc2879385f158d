// Whoever joins rooms without end is told so, and everybody else goes on to join.
import { createPresence } from './presence.ts'

/** A journal with room for 180 tabs, of which one user may have 20. */
function setup() {
  const counted: Record<string, number> = {}
  const presence = createPresence({
    rulesOf: () => ({ members: 'named', names: 'any' }),
    tell() {},
    counts: {
      joined(result) {
        counted[result] = (counted[result] ?? 0) + 1
      },
      told() {},
    },
    now: () => 0,
    every: () => () => {},
    turn() {},
    randomBytes: size => Buffer.alloc(size),
    tabsMax: 180,
  })
  const said = { name: 'ann', claim: undefined, leaving: undefined }
  const join = (user: string, payer: string, tab: number, leaving?: 'now') => {
    const key = `room:${tab} join ${user}.${tab}`
    presence.onWatch('a', { key, position: undefined, payload: { ...said, user, leaving }, payer })
    return presence.answersFor('a', key).answers[0]
  }
  return { presence, join, counted }
}

test('a user has a share of all places, others find some, and what is left is free again', () => {
  const { presence, join, counted } = setup()
  const answers = Array.from({ length: 30 }, (_, tab) => join('ann', 'a1.u1', tab))
  expect(answers.filter(({ type }) => type === 'joined')).toHaveLength(20)
  expect(answers.at(-1)).toMatchObject({
    type: 'failed',
    code: 'capacity',
    message: expect.stringContaining('leave some'),
  })
  expect(counted).toEqual({ joined: 20, share: 10 })
  expect(join('bob', 'a2.u2', 0)).toMatchObject({ type: 'joined' })

  expect(join('ann', 'a1.u1', 0, 'now')).toMatchObject({ type: 'left' })
  expect(join('ann', 'a1.u1', 40)).toMatchObject({ type: 'joined' })
  expect(presence.stats().tabs).toBe(21)
})
