import { createTestGateway } from '../../test-support.ts'

test('want gives the value, or the problem, and never rejects', async () => {
  const { gateway, backbone } = createTestGateway()
  const wanted = gateway.singleFlight.want('tick:1')
  backbone.value('tick:1', '1')
  expect(await wanted).toMatchObject({ value: { contentType: 'application/json' }, ageMs: 0 })

  const failing = gateway.singleFlight.want('tick:2')
  backbone.failed('tick:2', 'backend_error', { retryAfterMs: 499.2 })
  expect(await failing).toMatchObject({ problem: { code: 'backend_error', retryAfterMs: 500 } })
})

test('want waits as long as an answer may take', async () => {
  const { gateway, backbone, pass } = createTestGateway()
  const wanted = gateway.singleFlight.want('tick:1')
  await pass(10_000)
  expect(await wanted).toMatchObject({ problem: { code: 'fetcher_timeout' } })
  expect(backbone.calls).toEqual(['get tick:1', 'cancelGet tick:1'])
})

test('a key that is watched is asked for anew where it waited in vain: that would have said what confirms it', async () => {
  const { gateway, backbone, connect, pass } = createTestGateway()
  const client = await connect()
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  const wanted = gateway.singleFlight.want('tick:1')
  await pass(10_000)
  await wanted
  expect(backbone.calls).toEqual(['watch tick:1', 'get tick:1', 'cancelGet tick:1', 'renewWatch tick:1'])
})
