// How long a member is kept whose connection broke, by a clock of the test's.
import { createTestWorld } from '@keycast/service/notify/test-world'
import { createPresence } from './presence.ts'

function setup() {
  const { world, pass, leap } = createTestWorld()
  const presence = createPresence({
    ...world,
    rulesOf: () => ({ members: 'named', names: 'any' }),
    tell() {},
    counts: { joined() {}, told() {} },
  })
  const keyOf = (user: string) => `room:1 join ${user}`
  const payload = { claim: undefined, leaving: undefined }
  return {
    pass,
    /** Time in which the process is busy. */
    leap,
    join(user: string, leaving?: 'later') {
      presence.onWatch('a', {
        key: keyOf(user),
        position: undefined,
        payload: { ...payload, user, name: user, leaving },
      })
    },
    /** As where another journal has the room. */
    unwatch: (user: string) => presence.onUnwatch('a', keyOf(user), false),
    tabs: () => presence.countsOf('room:1').tabs,
  }
}

test('a connection that breaks while the journal is busy is kept for 10 s all the same', async () => {
  const { join, pass, leap, tabs } = setup()
  for (const user of ['ann', 'bob']) join(user)
  join('ann', 'later')
  await pass(5_000)
  leap(400)
  join('bob', 'later')
  await pass(9_990)
  expect(tabs()).toBe(1)
  await pass(100)
  expect(tabs()).toBe(0)
})

test('a member who came back, and whose connection breaks again, is kept for 10 s from then on', async () => {
  const { join, unwatch, pass, tabs } = setup()
  join('ann')
  unwatch('ann')
  await pass(5_000)
  join('ann')
  await pass(4_000)
  unwatch('ann')
  await pass(9_900)
  expect(tabs()).toBe(1)
  await pass(200)
  expect(tabs()).toBe(0)
})
