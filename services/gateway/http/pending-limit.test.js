import { createTestGateway } from '../test-support.js'
import { limitPending } from './pending-limit.js'

test('only so many wait at a time, and the next may once one has its answer', async () => {
  const { gateway, backbone } = createTestGateway()
  const { want } = limitPending(gateway.singleFlight, 2)
  const first = want('tick:1')
  void want('tick:2')
  expect(await want('tick:3')).toMatchObject({ problem: { code: 'too_many_waiting' } })
  expect(backbone.calls).toEqual(['get tick:1', 'get tick:2'])

  const version = backbone.value('tick:1', '1')
  expect(await first).toMatchObject({ value: { version } })
  void want('tick:3')
  expect(backbone.calls.at(-1)).toBe('get tick:3')
})
