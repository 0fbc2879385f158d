import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createTally } from '../tally.ts'
import { counts, createWorkload, histograms, type WaitOutcome } from './wait.ts'

test('a viewer asks again with what it was answered, and counts a version that it had before', async () => {
  const asked: string[] = []
  const waiting: ServerResponse[] = []
  const server = createServer((request, response) => {
    asked.push(String(request.url))
    waiting.push(response)
    server.emit('asked')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const tally = createTally({ counts, histograms })
  const { port } = server.address() as AddressInfo
  const starts = { 'told:1': { version: 'v1', cursor: '1.1', revision: 1 } }
  let us = 0
  const workload = createWorkload({
    settings: { host: '127.0.0.1', port, viewers: 1, starts },
    tally,
    newSchedule: undefined as never,
    onLate() {},
    nowUs: () => us,
    index: 0,
    processes: 1,
  })
  const answer = async (status: number, version: string, cursor: string, revision?: number) => {
    waiting
      .shift()
      ?.writeHead(status, { etag: `"${version}"`, 'keycast-cursor': cursor })
      .end(revision && JSON.stringify({ revision }))
    await once(server, 'asked')
  }

  await once(server, 'asked')
  workload.tell?.({ listed: true })
  await answer(204, '', '1.2')
  workload.tell?.({ key: 'told:1', revision: 2, atUs: 1_000 })
  us = 3_000
  await answer(200, 'v2', '2.2', 2)
  await answer(200, 'v1', '3.2', 1)
  expect(asked).toEqual(
    ['v1&cursor=1.1', 'v1&cursor=1.2', 'v2&cursor=2.2', 'v1&cursor=3.2'].map(each => `/v1/wait/told:1?after=${each}`),
  )
  expect(tally.counts).toMatchObject({ requested: 4, unchanged: 1, received: 1, skipped: 0, wentBack: 1 })
  // On the way back, too, it is a change that was said.
  workload.tell?.({ key: 'told:1', revision: 3, atUs: 4_000 })
  workload.tell?.({ key: 'told:1', revision: 2, atUs: 5_000 })
  await answer(200, 'v2', '5.2', 2)
  expect(tally.counts).toMatchObject({ received: 2, skipped: 1 })

  workload.tell?.({ key: 'told:1', revision: 4, atUs: 6_000 })
  expect(workload.outcome?.() as WaitOutcome).toEqual({ edges: ['told:1 1.2'], missing: 1 })
  workload.stop?.()
  server.closeAllConnections()
  await once(server.close(), 'close')
})
