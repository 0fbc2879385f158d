// 130 MB of changes go past somebody who reads none of them: memory stays flat, and nobody else notices.
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { type Client, connect } from '../support/client.ts'
import { show } from '../support/figures.ts'
import { MIB, watchMemory } from '../support/memory.ts'
import { startSystem } from '../support/system.ts'

const BYTES = 130_000
const ROUNDS = 100
/** Rounds before memory is looked at: both sides of every comparison have warmed up. */
const ROUNDS_BEFORE = 20
const GROWTH_BYTES_MAX = 50 * MIB

const backend = await startBackend()
const { gateways, fetchers } = await startSystem({
  gateways: 2,
  // A busy machine takes longer for all rounds than a client may read nothing.
  env: { GATEWAY_STALL_MS_MAX: '600000' },
  namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: 0, timeout: '10s' } },
})
const [gateway, otherGateway] = gateways

/** Ten keys of 130 KB, and a way to change all of them. */
const createDocuments = (name: string) => {
  const keys = Array.from({ length: 10 }, (_, index) => `doc:${name}-${index}`)
  let revision = 0
  return {
    keys,
    revision: () => revision,
    write() {
      revision += 1
      const handler = answers.json(documentOf(revision, BYTES))
      for (const key of keys) backend.on(`/docs/${key.slice(4)}`, handler)
      return revision
    },
  }
}

/** One more revision of every key, until all viewers have it. */
const playRound = async (documents: ReturnType<typeof createDocuments>, viewers: Client[]) => {
  const revision = documents.write()
  await gateway.refresh(documents.keys)
  for (const viewer of viewers) for (const key of documents.keys) await viewer.reaches(key, revision)
}

const expectEveryRevision = (documents: ReturnType<typeof createDocuments>, viewer: Client) => {
  const all = Array.from({ length: documents.revision() }, (_, index) => index + 1)
  for (const key of documents.keys) expect(viewer.of(key).revisions).toEqual(all)
}

test('a stalled viewer costs the gateway no memory and the others no change', async () => {
  const documents = createDocuments('viewer')
  documents.write()
  const viewers = await Promise.all([1, 2, 3].map(() => connect(gateway.url)))
  const stalled = await connect(gateway.url)
  for (const client of [...viewers, stalled]) await client.subscribe(documents.keys)
  for (const key of documents.keys) await stalled.reaches(key, 1)
  for (let round = 0; round < ROUNDS_BEFORE; round += 1) await playRound(documents, viewers)

  const grown = watchMemory(gateway.process.pid)
  stalled.stall()
  const startedAt = performance.now()
  for (let round = 0; round < ROUNDS; round += 1) await playRound(documents, viewers)
  const tookMs = performance.now() - startedAt
  const growthBytes = grown()
  show(
    `stalled viewer: ${ROUNDS} changes of 10 × 130 KB in ${Math.round(tookMs)} ms, ` +
      `gateway grew ${(growthBytes / MIB).toFixed(1)} MiB`,
  )
  expect(growthBytes).toBeLessThan(GROWTH_BYTES_MAX)
  for (const viewer of viewers) expectEveryRevision(documents, viewer)

  // It reads again, and is given the latest, not the 100 it missed.
  stalled.resume()
  for (const key of documents.keys) await stalled.reaches(key, documents.revision())
  expect(stalled.of(documents.keys[0]).values).toBeLessThan(ROUNDS)
  for (const client of [...viewers, stalled]) client.close()
})

test('a stalled gateway costs the fetcher no memory and the other gateway no change', async () => {
  const documents = createDocuments('gateway')
  documents.write()
  const viewer = await connect(gateway.url)
  const behindStalled = await connect(otherGateway.url)
  for (const client of [viewer, behindStalled]) await client.subscribe(documents.keys)
  for (const key of documents.keys) await behindStalled.reaches(key, 1)
  for (let round = 0; round < ROUNDS_BEFORE; round += 1) await playRound(documents, [viewer])

  const grown = watchMemory(fetchers[0].process.pid)
  otherGateway.process.signal('SIGSTOP')
  const startedAt = performance.now()
  for (let round = 0; round < ROUNDS; round += 1) await playRound(documents, [viewer])
  const tookMs = performance.now() - startedAt
  const growthBytes = grown()
  show(
    `stalled gateway: ${ROUNDS} changes of 10 × 130 KB in ${Math.round(tookMs)} ms, ` +
      `fetcher grew ${(growthBytes / MIB).toFixed(1)} MiB`,
  )
  expect(growthBytes).toBeLessThan(GROWTH_BYTES_MAX)
  expectEveryRevision(documents, viewer)

  otherGateway.process.signal('SIGCONT')
  for (const key of documents.keys) await behindStalled.reaches(key, documents.revision())
  for (const client of [viewer, behindStalled]) client.close()
})
