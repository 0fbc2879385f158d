import { realWorld } from '@keycast/service'
import { createDeltas } from './deltas.ts'
import { createConnections } from './http/connections.ts'
import { createPuller } from './pull.ts'
import { warmUp } from './warm-up.ts'

test('code that leases take is run: values and confirmations, with nothing left open', async () => {
  const connections = createConnections(realWorld)
  const puller = createPuller({ ...realWorld, connections })
  const kinds: Record<string, number> = {}
  const pulls = await warmUp({
    ...realWorld,
    puller: {
      async pull(lease) {
        // On a busy machine some would take longer than a warm-up waits for.
        const pulled = await puller.pull({ ...lease, timeoutMs: 30_000 })
        kinds[pulled.result.kind] = (kinds[pulled.result.kind] ?? 0) + 1
        return pulled
      },
    },
    deltas: createDeltas({ ...realWorld, bytesMax: 0 }),
    pullsMax: 300,
    now: () => 0,
  })
  connections.close()

  expect(pulls).toBe(300)
  expect(kinds).toEqual({ value: pulls / 2, current: pulls / 2 })
})

test('a slow machine starts all the same', async () => {
  let at = 0
  const pulls = await warmUp({
    ...realWorld,
    puller: {
      async pull() {
        at += 300
        return { result: { kind: 'failed', code: 'backend_timeout', message: '' } }
      },
    },
    deltas: createDeltas({ ...realWorld, bytesMax: 0 }),
    pullsMax: 300,
    now: () => at,
  })

  expect(pulls).toBeLessThan(30)
})

test('it can be left out', async () => {
  const puller = { pull: () => Promise.reject(new Error('nothing is to be pulled')) }
  expect(await warmUp({ ...realWorld, puller, deltas: createDeltas({ ...realWorld, bytesMax: 0 }), pullsMax: 0 })).toBe(
    0,
  )
})
