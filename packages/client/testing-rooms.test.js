import { createFakeKeycast } from './testing.js'

const soon = () => new Promise(resolve => setImmediate(resolve))

test('what is published is kept and told, and what others publish comes', async () => {
  const fake = createFakeKeycast()
  fake.publish('room:1', 'before', { from: 'bob' })
  const room = fake.keycast.room('room:1', { last: 10 })
  /** @type {any[]} */
  const seen = []
  room.on('message', ({ data, from }) => seen.push([data, from]))
  await soon()
  expect(fake.watched()).toEqual(['room:1'])
  expect(await room.publish('mine')).toMatchObject({ position: { epoch: 'fake', seq: 2 }, duplicate: false })
  fake.publish('room:1', 'after')
  expect(seen).toEqual([
    ['before', 'bob'],
    ['mine', undefined],
    ['after', undefined],
  ])
  expect(fake.messages('room:1')).toEqual(['before', 'mine', 'after'])
  const { messages, more } = await room.history({ limit: 2 })
  expect([messages.map(({ data }) => data), more]).toEqual([['mine', 'after'], true])
  const older = await room.history({ before: messages[0].position })
  expect([older.messages.map(({ data }) => data), older.more]).toEqual([['before'], false])
  room.close()
  await soon()
  expect(fake.watched()).toEqual([])
})

test('a part of the history is 500 messages at most, as at a gateway', async () => {
  const fake = createFakeKeycast()
  for (let n = 1; n <= 501; n++) fake.publish('room:1', n)
  const { messages, more } = await fake.keycast.room('room:1', { follow: false }).history({ limit: 1_000 })
  expect([messages.length, messages[0].data, more]).toEqual([500, 2, true])
})

test('publishes can be refused, and a lost connection resumes', async () => {
  const fake = createFakeKeycast()
  const room = fake.keycast.room('room:1')
  await soon()
  fake.refusePublishes('room:1', 'forbidden')
  await expect(room.publish(1)).rejects.toMatchObject({ code: 'forbidden' })
  fake.refusePublishes('room:1')
  fake.disconnect()
  const published = room.publish(2, { messageId: 'abcdefghijklmnop' })
  fake.publish('room:1', 'meanwhile')
  expect(room.pending).toHaveLength(1)
  fake.reconnect()
  await expect(published).resolves.toMatchObject({ position: { seq: 2 } })
  expect(room.position).toEqual({ epoch: 'fake', seq: 2 })
})

test('members join, are refused a name that is taken, and leave', async () => {
  const fake = createFakeKeycast()
  const room = fake.keycast.room('room:1', { presence: true })
  await soon()
  fake.setMembers('room:1', ['Bob'])
  await expect(room.join('Bob')).rejects.toMatchObject({ code: 'name_taken' })
  expect(await room.join('Ann')).toEqual({ name: 'Ann', claim: expect.stringMatching(/^[\w-]{22}$/) })
  expect(room.members.state.members?.map(({ name }) => name)).toEqual(['Bob', 'Ann'])
  await room.leave()
  expect(room.members.state).toMatchObject({ count: 1 })
})

test('a publish whose outcome is unknown is tried again as time passes, until its deadline', async () => {
  const fake = createFakeKeycast()
  const room = fake.keycast.room('room:1')
  await soon()
  fake.refusePublishes('room:1', 'publish_unknown')
  const first = room.publish(1, { deadlineMs: 5_000 })
  const second = room.publish(2)
  await soon()
  fake.passTime(5_000)
  await expect(first).rejects.toMatchObject({ code: 'publish_unknown' })
  fake.refusePublishes('room:1')
  fake.passTime(2_000)
  await expect(second).resolves.toMatchObject({ position: { seq: 1 } })
  expect(fake.messages('room:1')).toEqual([2])
})

test('a lost connection stays lost however much time passes, and comes back by reconnect', async () => {
  const fake = createFakeKeycast()
  fake.set('a:1', 1)
  const handle = fake.keycast.value('a:1')
  await soon()
  fake.disconnect()
  fake.set('a:1', 2)
  fake.passTime(60_000)
  expect(handle.state.value).toBe(1)
  fake.reconnect()
  fake.passTime(60_000)
  await soon()
  expect([fake.keycast.state.name, handle.state.value]).toEqual(['open', 2])
})
