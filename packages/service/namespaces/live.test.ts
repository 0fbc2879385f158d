import { createLiveNamespaces } from './live.ts'
import { type ReadNamespaces, readNamespaces } from './namespaces.ts'

const read = (namespaces: object): ReadNamespaces =>
  readNamespaces({ path: 'keycast.yaml', text: JSON.stringify({ namespaces }), env: {} })

const doc = { source: 'http', url: 'http://one/{id}' }
const room = { source: 'journal' }
const authorize = { url: 'http://rights/{id}' }

test('a namespace stays the same object, whose rules are those of the new file', () => {
  const live = createLiveNamespaces(read({ doc: { ...doc, redirects: 'same-origin' }, room }))
  const [held, heldRoom] = [live.fetched.get('doc'), live.journal.get('room')]
  live.take(read({ doc: { ...doc, url: 'http://two/{id}', refresh: '5s' }, room: { ...room, members: 'named' } }))
  expect(live.fetched.get('doc')).toBe(held)
  expect(held).toMatchObject({ origin: 'http://two', refreshMs: 5_000 })
  expect(held?.urlFor('7')).toBe('http://two/7')
  expect(held).not.toHaveProperty('followsRedirects')
  expect(live.journal.get('room')).toBe(heldRoom)
  expect(heldRoom?.members).toBe('named')
})

test('names are those of now, and a namespace that is gone is found no more', () => {
  const live = createLiveNamespaces(read({ doc, room }))
  live.take(read({ page: doc, hall: room }))
  expect([live.fetched.names, live.journal.names]).toEqual([['page'], ['hall']])
  expect([live.fetched.get('doc'), live.journal.get('room')]).toEqual([undefined, undefined])
})

test('a namespace that comes back is the same object, and it is told what is another since it was there', () => {
  const live = createLiveNamespaces(read({ doc: { ...doc, authorize }, page: doc }))
  const held = live.fetched.get('doc')
  live.take(read({ page: doc }))
  const changes = live.take(read({ doc: { ...doc, url: 'http://two/{id}', refresh: '5s' }, page: doc }))
  expect(live.fetched.get('doc')).toBe(held)
  expect(held?.urlFor('7')).toBe('http://two/7')
  expect(held).not.toHaveProperty('authorize')
  expect([[...changes.request], [...changes.times.keys()], [...changes.decided]]).toEqual([['doc'], ['doc'], ['doc']])
  live.take(read({ page: doc }))
  const kind = { doc: { source: 'journal' }, page: doc }
  expect(() => live.take(read(kind))).toThrow('namespaces.doc.source cannot change while services run')
})

test.each([
  ['url', { url: 'http://two/{id}' }, ['request']],
  ['headers', { headers: { 'x-tenant': 'acme' } }, ['request']],
  ['batch', { url: undefined, batch: { url: 'http://one/?ids={ids}', items: '/items', id: '/id' } }, ['request']],
  ['refresh', { refresh: '5s' }, ['times']],
  ['timeout', { timeout: '5s' }, ['times']],
  ['authorize', { authorize }, ['decided']],
  ['maxBytes', { maxBytes: '1KiB' }, []],
])('a change of %s says what it concerns', (_, fields, concerned) => {
  const changes = createLiveNamespaces(read({ doc })).take(read({ doc: { ...doc, ...fields } }))
  const told = Object.entries(changes).flatMap(([what, names]) => (names.has('doc') ? [what] : []))
  expect(told).toEqual(concerned)
})

test('the times of before are told with a change: without periodic refresh no value was too old', () => {
  const live = createLiveNamespaces(read({ doc, calm: { ...doc, refresh: 0 } }))
  const { times } = live.take(read({ doc: { ...doc, refresh: '9s' }, calm: doc }))
  expect([...times]).toEqual([
    ['doc', { beforeMs: 3_000 }],
    ['calm', { beforeMs: Number.POSITIVE_INFINITY }],
  ])
})

test('who decides stays the same object until something about the question changes', () => {
  const deciding = { ...doc, authorize }
  const live = createLiveNamespaces(read({ doc: deciding }))
  const held = live.fetched.get('doc')?.authorize
  expect(live.take(read({ doc: { ...deciding, refresh: '9s' } })).authorize.size).toBe(0)
  expect(live.fetched.get('doc')?.authorize).toBe(held)
  expect([...live.take(read({ doc: { ...deciding, authorize: { ...authorize, keep: '5s' } } })).authorize]).toEqual([
    'doc',
  ])
  expect(live.fetched.get('doc')?.authorize).toMatchObject({ keepMs: 5_000 })
})

test.each([
  ['source', { doc: { source: 'journal' } }],
  ['per', { doc: { ...doc, per: 'user', credentials: 'viewer' } }],
])('a %s that changes is refused by name, and nothing else of the file is taken over', (field, next) => {
  const live = createLiveNamespaces(read({ doc, page: doc }))
  const take = () => live.take(read({ ...next, page: { ...doc, refresh: '9s' } }))
  expect(take).toThrow(`namespaces.doc.${field} cannot change while services run: give the namespace another name`)
  expect(live.fetched.get('page')?.refreshMs).toBe(1_000)
})

test('streams of changes come, go and change their times with a restart', () => {
  const streamed = { ...doc, changes: { sse: 'http://one/changes' } }
  const live = createLiveNamespaces(read({ doc: streamed }))
  const why = 'namespaces.doc: changes, and its refresh, take effect with a restart'
  for (const next of [{ page: doc }, { doc }, { doc: { ...streamed, refresh: '9s' } }]) {
    expect(() => live.take(read(next))).toThrow(why)
  }
  expect([...live.take(read({ doc: { ...streamed, url: 'http://one/docs/{id}' } })).request]).toEqual(['doc'])
})
