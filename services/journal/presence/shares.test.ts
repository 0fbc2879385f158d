// Whoever joins rooms without end is told so, and everybody else goes on to join.
import { createTestWorld } from '@keycast/service/notify/test-world'
import { createPresence } from './presence.ts'

/** A journal with room for 180 tabs, of which one user may have 20. */
function setup() {
  const counted: Record<string, number> = {}
  const { world, pass } = createTestWorld()
  const presence = createPresence({
    ...world,
    rulesOf: () => ({ members: 'named', names: 'any' }),
    tell() {},
    counts: {
      joined(result) {
        counted[result] = (counted[result] ?? 0) + 1
      },
      told() {},
    },
    tabsMax: 180,
  })
  const said = { name: 'ann', claim: undefined, leaving: undefined }
  const join = (user: string, payer: string, tab: number, leaving?: 'now' | 'later', room = tab) => {
    const key = `room:${room} join ${user}.${tab}`
    presence.onWatch('a', { key, position: undefined, payload: { ...said, user, leaving }, payer })
    return presence.answersFor('a', key).answers[0]
  }
  return { presence, join, counted, pass }
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

test('one who comes back in another tab gives one place back for the tab before, once', async () => {
  const { presence, join, pass } = setup()
  for (let tab = 0; tab < 20; tab++) join('ann', 'a1.u1', tab)
  join('ann', 'a1.u1', 0, 'later')
  expect(join('ann', 'a1.u1', 100, undefined, 0)).toMatchObject({ type: 'failed', code: 'capacity' })
  join('ann', 'a1.u1', 19, 'now')
  expect(join('ann', 'a1.u1', 100, undefined, 0)).toMatchObject({ type: 'joined' })
  await pass(15_000)
  expect([presence.stats().tabs, presence.countsOf('room:0')]).toEqual([19, { count: 1, tabs: 1 }])
  expect(join('ann', 'a1.u1', 19)).toMatchObject({ type: 'joined' })
  expect(join('ann', 'a1.u1', 20)).toMatchObject({ type: 'failed', code: 'capacity' })
})

test('a tab that left, and joined again before its broken connection was forgotten, is seen to leave again', async () => {
  const { presence, join, pass } = setup()
  join('ann', 'a1.u1', 0)
  join('ann', 'a1.u1', 0, 'later')
  join('ann', 'a1.u1', 0, 'now')
  join('ann', 'a1.u1', 0)
  await pass(15_000)
  expect(presence.countsOf('room:0')).toEqual({ count: 1, tabs: 1 })
  join('ann', 'a1.u1', 0, 'now')
  await pass(1_000)
  expect(presence.stats()).toEqual({ tabs: 0, rooms: 0 })
})
