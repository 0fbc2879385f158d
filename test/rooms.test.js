// Conversations through real processes: what clients publish into rooms, and what they hear. Each rule of the protocol's page
// on rooms is a test here.
import { joinRooms, startConversations } from './support/rooms.js'

const room = 'room:1'

test('what one client publishes, all who are subscribed are sent, through every gateway', async () => {
  const { gateways } = await startConversations({ gateways: 2 })
  const [one, two] = await Promise.all(gateways.map(({ url }) => joinRooms(url)))
  for (const client of [one, two]) {
    const { keys } = await client.subscribe(room)
    expect(keys).toEqual([{ key: room, epoch: expect.any(String), seq: 0, oldest: 1, recovered: false, count: 0 }])
  }
  const published = await one.publish(room, { text: 'Good morning' })
  expect(published).toMatchObject({ type: 'published', key: room, seq: 1, at: expect.any(Number) })
  await two.until(() => two.all('message').length === 1, 'the message')
  expect(two.all('message')).toEqual([
    {
      type: 'message',
      key: room,
      seq: 1,
      at: published.at,
      messageId: expect.stringMatching(/^[\w-]{16}$/),
      data: { text: 'Good morning' },
    },
  ])
  // The publisher saw its message before it heard that it is kept.
  expect(one.received.slice(-2).map(({ type }) => type)).toEqual(['message', 'published'])
})
