import { createTestGateway } from '../test-support.ts'

test('a pong carries the id and counts the pings of the whole gateway', async () => {
  const { connect } = createTestGateway()
  const [one, other] = [await connect(), await connect()]
  expect(await one.ask({ type: 'ping', id: 1 })).toEqual([{ type: 'pong', id: 1, count: 1 }])
  expect(await other.ask({ type: 'ping', id: 'a"b' })).toEqual([{ type: 'pong', id: 'a"b', count: 2 }])
  expect(await one.ask({ type: 'ping' })).toEqual([{ type: 'pong', count: 3 }])
})

test('a number that would come back changed is refused', async () => {
  const { connect } = createTestGateway()
  expect(await (await connect()).ask('{"type":"ping","id":1e999}')).toEqual([
    expect.objectContaining({ code: 'bad_message' }),
  ])
})

test('pings that come together are answered in one write', async () => {
  const { connect, turn } = createTestGateway()
  const client = await connect()
  for (let id = 0; id < 16; id++) client.send({ type: 'ping', id })
  await turn()
  expect(client.connection.writes).toHaveLength(1)
  expect(client.connection.read()).toHaveLength(16)
})
