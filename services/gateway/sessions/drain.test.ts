import { drain } from './drain.ts'

/** @param options sessions that do not answer a close */
function setup(count: number, { stubborn = [] }: { stubborn?: number[] } = {}) {
  const open = new Map(Array.from({ length: count }, (_, id) => [id, { id } as any]))
  const log: [what: string, id: unknown, atMs: number][] = []
  let waitedMs = 0
  let turn = 0
  const draining = drain({
    sessions: {
      all: () => open.values(),
      size: () => open.size,
      terminate: ({ id }, reason) => log.push([`terminate ${reason}`, id, waitedMs]),
    },
    outbox: {
      send: ({ id }: any, message: any) => log.push([JSON.stringify(message), id, waitedMs]),
      close: ({ id }: any, code: string) => {
        log.push([`close ${code}`, id, waitedMs])
        if (!stubborn.includes(id)) open.delete(id)
      },
    } as any,
    spreadMs: 1_000,
    random: () => turn++ / count,
    after: (ms, run) => {
      waitedMs += ms
      queueMicrotask(run)
      return () => {}
    },
  })
  return { draining, log, waited: () => waitedMs }
}

test('each client is told its own time to reconnect, and closed with 1012 some time after it', async () => {
  const { draining, log } = setup(1_000)
  await draining
  expect(log[0]).toEqual(['{"type":"closing","reconnectAfterMs":0}', 0, 0])
  expect(log[500]).toEqual(['{"type":"closing","reconnectAfterMs":500}', 500, 0])
  expect(log[1_000]).toEqual(['close restarting', 0, 500])
  expect(log[1_500]).toEqual(['close restarting', 500, 1_000])
  expect(log).toHaveLength(2_000)
})

test('a few clients leave sooner than many', async () => {
  const { draining, waited } = setup(5)
  await draining
  expect(waited()).toBeLessThan(600)
})

test('a client that does not answer the close is cut', async () => {
  const { draining, log } = setup(2, { stubborn: [1] })
  await draining
  expect(log.at(-1)).toEqual(['terminate restarting', 1, 1_050])
})

test('a gateway without clients is done at once', async () => {
  const { draining, waited } = setup(0)
  await draining
  expect(waited()).toBe(0)
})
