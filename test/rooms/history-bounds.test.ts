// Nobody gives a message that its room's history no longer has: not a gateway that has just handed it out, and nobody
// after its age, though nothing is published any more.
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { joinRooms } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'

type Gateway = Awaited<ReturnType<typeof startRooms>>['gateways'][0]

async function publish({ call }: Gateway, key: string, count: number) {
  for (let n = 1; n <= count; n++) await call('/v1/publish', { key, data: n })
}

/** `oldest` as each answer says it. */
async function oldestIn({ url, http, call }: Gateway, key: string) {
  const client = await joinRooms(url)
  const { keys } = await client.subscribe(key)
  const history = await client.request({ type: 'history', key, limit: 1 })
  client.socket.close()
  const overHttp = JSON.parse(String((await ask(`${http}/v1/messages/${key}?limit=1`)).body))
  const described = JSON.parse(String((await call(`/v1/rooms/${key}`)).body))
  return [keys[0].oldest, history.oldest, overHttp.oldest, described.oldest]
}

test('a client that resumes before what the history holds is told so, and every answer names the same oldest message', async () => {
  const { gateways } = await startRooms({ namespaces: { room: { history: { messages: 10 } } } })
  const [gateway] = gateways
  const watching = await joinRooms(gateway.url)
  const { keys } = await watching.subscribe('room:1')
  const { epoch } = keys[0]
  await publish(gateway, 'room:1', 100)
  await watching.until(() => watching.positions.get('room:1')?.seq === 100, 'all messages')

  const resumed = await joinRooms(gateway.url)
  resumed.positions.set('room:1', { epoch, seq: 5 })
  const answer = await resumed.resume(resumed.positions)
  expect(answer.keys).toMatchObject([{ seq: 100, oldest: 91, recovered: false, count: 0 }])
  expect(await oldestIn(gateway, 'room:1')).toEqual([91, 91, 91, 91])
  expect(resumed.received.filter(({ type }) => type === 'message')).toEqual([])
})

test('messages past their age are given to nobody, though nothing is published any more', async () => {
  const { gateways } = await startRooms({ namespaces: { room: { history: { age: '3s' } } } })
  const [gateway] = gateways
  const watching = await joinRooms(gateway.url)
  const { keys } = await watching.subscribe('room:1')
  const { epoch } = keys[0]
  await publish(gateway, 'room:1', 5)
  await watching.until(() => watching.positions.get('room:1')?.seq === 5, 'all messages')
  await eventually(async () => (await oldestIn(gateway, 'room:1')).every(oldest => oldest === 6), 'all being past')
  const resumed = await joinRooms(gateway.url)
  const answer = await resumed.resume(new Map([['room:1', { epoch, seq: 0 }]]))
  expect(answer.keys).toMatchObject([{ seq: 5, oldest: 6, recovered: false, count: 0 }])
  await eventually(
    async () => (await gateway.metric('keycast_gateway_tail_bytes')) === 0,
    'the gateway holding nothing',
  )
})
