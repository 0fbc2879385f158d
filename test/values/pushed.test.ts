// Values that a backend hands over and Keycast keeps (`source: pushed`): no backend is asked, and no fetcher is there.

import { atEnd } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import type { NamespaceSettings } from '../support/keycast-yaml.ts'
import { joinRooms } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'
import { startValkey } from '../support/valkey.ts'

const namespaces: Record<string, NamespaceSettings> = { price: { source: 'pushed', maxBytes: '1KiB' }, room: {} }
const access = { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] } }

type Started = Awaited<ReturnType<typeof startRooms>>
type At = Started['gateways'][number]

const ranked = (order?: number): Record<string, string> =>
  order === undefined ? {} : { 'keycast-order': String(order) }
const put = (at: At, key: string, revision: number, order?: number) =>
  at.put(key, JSON.stringify({ revision }), ranked(order))
const remove = (at: At, key: string, order?: number) => at.remove(key, ranked(order))
const read = (at: At, key: string) => ask(`${at.http}/v1/values/${key}`)

async function viewersOf({ gateways }: Started, key: string) {
  const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe([key])))
  const all = (condition: (viewer: (typeof viewers)[number]) => unknown, what: string) =>
    Promise.all(viewers.map(viewer => viewer.until(() => condition(viewer), what)))
  return {
    at: (revision: number) => Promise.all(viewers.map(viewer => viewer.reaches(key, revision))),
    gone: () => all(viewer => viewer.of(key).error?.code === 'not_found', 'no value'),
    stale: () => all(viewer => viewer.of(key).stale?.code === 'journal_unavailable', 'being stale'),
    fresh: () => all(viewer => !viewer.of(key).stale && !viewer.of(key).error, 'being fresh'),
    revisions: () => viewers.map(viewer => viewer.of(key).revision),
  }
}

async function envOf(log: string): Promise<Record<string, string>> {
  if (log !== 'valkey') return { JOURNAL_LOG: log }
  const valkey = await startValkey()
  atEnd(() => valkey.remove())
  return { JOURNAL_LOG: log, VALKEY_URL: valkey.url }
}

test.each([
  ['memory', 1],
  ['lmdb', 1],
  ['valkey', 2],
])('with its log in %s a value is kept, shown to all, and stays over restarts', async (log, journals) => {
  const started = await startRooms({ namespaces, access, gateways: 2, journals, journalEnv: await envOf(log) })
  const [one, other] = started.gateways
  const viewers = await viewersOf(started, 'price:1')
  await viewers.gone()
  expect([(await read(one, 'price:1')).status, (await read(one, 'price:1')).json().code]).toEqual([404, 'not_found'])

  expect((await put(one, 'price:1', 1)).json()).toEqual({ key: 'price:1', taken: true, version: expect.any(String) })
  await viewers.at(1)
  for (const gateway of [one, other]) {
    const response = await read(gateway, 'price:1')
    expect([response.status, response.json(), response.headers['content-type']]).toEqual([
      200,
      { revision: 1 },
      'application/json',
    ])
    const { cursor } = /^(?<cursor>\d+)\./.exec(String(response.headers['keycast-cursor']))?.groups ?? {}
    expect(Number(cursor)).toBeGreaterThan(1_700_000_000_000)
  }

  const numbers = Array.from({ length: 40 }, (_, index) => index + 1).sort(() => Math.random() - 0.5)
  const responses = await Promise.all(
    numbers.map((number, index) => put(started.gateways[index % 2], 'price:1', number, number)),
  )
  await viewers.at(40)
  expect(responses[numbers.indexOf(40)].json()).toMatchObject({ taken: true })
  expect((await put(other, 'price:1', 7, 7)).json()).toEqual({ key: 'price:1', taken: false, order: 40 })

  expect((await remove(one, 'price:1', 41)).json()).toEqual({ key: 'price:1', taken: true })
  await viewers.gone()
  expect((await put(other, 'price:1', 40, 40)).json()).toEqual({ key: 'price:1', taken: false, order: 41 })
  await put(other, 'price:1', 42, 42)
  await viewers.at(42)

  for (const journal of started.journals) await journal.process().kill()
  await viewers.stale()
  const refused = await put(one, 'price:1', 43, 43)
  expect([refused.status, refused.json().code, refused.headers['retry-after']]).toEqual([
    503,
    'journal_unavailable',
    '1',
  ])
  expect(viewers.revisions()).toEqual([42, 42])
  for (const journal of started.journals) await journal.restart()
  if (log === 'memory') await viewers.gone()
  else await viewers.fresh()
  const again = async () => (await put(one, 'price:1', 44, 44)).status === 200
  await eventually(again, 'the journal taking values again')
  await viewers.at(44)

  const late = await started.startGateway()
  expect((await read(late, 'price:1')).json()).toEqual({ revision: 44 })
  if (log !== 'memory') expect((await put(late, 'price:1', 43, 43)).json()).toMatchObject({ taken: false, order: 44 })
  await Promise.all([...started.gateways, late].map(({ process }) => process.kill()))
  await Promise.all(started.journals.map(journal => journal.process().kill()))
})

test('nobody but a backend says what a value is, at whatever door, and by whatever name', async () => {
  const started = await startRooms({ namespaces, access, journalEnv: { JOURNAL_LOG: 'memory' } })
  const [at] = started.gateways
  await put(at, 'price:1', 1)
  const client = await joinRooms(at.url)
  for (const key of ['price:1', '=price:1']) {
    const code = key === 'price:1' ? 'unknown_namespace' : 'bad_key'
    for (const request of [
      { type: 'publish', key, data: { revision: 9 }, messageId: 'aaaaaaaaaaaaaaaaaaaa' },
      { type: 'history', key },
      { type: 'join', key, name: 'Ann' },
    ]) {
      expect([request.type, await client.request(request)]).toMatchObject([request.type, { type: 'error', code }])
    }
    expect(await at.call('/v1/publish', { key, data: { revision: 9 } })).toMatchObject({
      status: key === 'price:1' ? 404 : 400,
    })
    const messages = await ask(`${at.http}/v1/messages/${key}`)
    expect(messages.json()).toMatchObject({ code })
    const deleted = await at.call(`/v1/rooms/${key}/messages/1`, undefined, 'DELETE')
    expect(deleted.json()).toMatchObject({ code })
  }
  for (const key of ['=price:1', '%3Dprice:1']) {
    expect((await put(at, key, 9)).json()).toMatchObject({ code: 'bad_key' })
    expect((await read(at, key)).json()).toMatchObject({ code: 'bad_key' })
  }
  const viewer = await connect(at.url)
  expect(await viewer.request({ type: 'subscribe', keys: ['=price:1'] })).toMatchObject({ keys: [] })
  expect(await viewer.request({ type: 'get', key: '=price:1' })).toMatchObject({ code: 'bad_key' })
  expect((await at.call('/v1/refresh', { keys: ['price:1'] })).json().problems[0]).toContain('handed over')
  expect((await put(at, 'price:2', 10 ** 15)).status).toBe(200)
  const large = await at.put('price:1', `"${'x'.repeat(1_024)}"`)
  expect([large.status, large.json().code]).toEqual([413, 'too_large'])
  expect((await read(at, 'price:1')).json()).toEqual({ revision: 1 })
})
