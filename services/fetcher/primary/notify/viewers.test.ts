import type { Outcome } from '@keycast/service/notify'
import { keysOf, setup } from '../test-support.ts'

const K = 'doc:1'
const notify = { url: 'http://backend/told', secretFiles: ['secret'], timeoutMs: 5_000 }

/** A primary whose backend is told of viewers. */
function toldOfViewers({ outcome = { kind: 'taken' } as Outcome } = {}) {
  const backend = { outcome }
  const primary = setup({ namespaces: { doc: { notify }, quiet: {} }, backendTakes: () => backend.outcome })
  primary.primary.viewers.start()
  /** Calls come about in turns of the event loop, between which the clock is turned. */
  async function settle(ms = 0) {
    for (let passed = 0; passed < ms; passed += 50) {
      primary.pass(50)
      await new Promise(resolve => setImmediate(resolve))
    }
    for (let turns = 0; turns < 10; turns++) await new Promise(resolve => setImmediate(resolve))
  }
  const told = () => primary.told.splice(0).map(({ viewers }) => viewers)
  return { ...primary, backend, settle, told }
}

const came = [[{ key: K, watched: true }]]
const gone = [[{ key: K, watched: false }]]

test('the backend is told that a key has viewers when the first gateway watches it, and that it has none after the last', async () => {
  const { watch, onUnwatch, settle, told } = toldOfViewers()
  watch('a', K)
  watch('a', 'quiet:1')
  await settle(500)
  expect(told()).toEqual(came)
  watch('b', K)
  onUnwatch('a', K)
  await settle(3_000)
  expect(told()).toEqual([])
  onUnwatch('b', K)
  await settle(3_000)
  expect(told()).toEqual(gone)
})

test('viewers who come and go within a moment are told once, as they are in the end; many keys in one call', async () => {
  const { watch, onUnwatch, settle, told } = toldOfViewers()
  for (const key of keysOf(5)) watch('a', key)
  for (let times = 0; times < 20; times++) {
    onUnwatch('a', K)
    watch('a', K)
  }
  await settle(3_000)
  expect(told()).toEqual([keysOf(5).map(key => ({ key, watched: true }))])
})

test('a get is no viewer', async () => {
  const { get, settle, told } = toldOfViewers()
  get('a', K)
  await settle(3_000)
  expect(told()).toEqual([])
})

test.each(['moved', 'lost'])(
  'of a key that a gateway %s nothing is told, nor once those who are left have gone',
  async how => {
    const { watch, onUnwatch, onLinkLost, settle, told } = toldOfViewers()
    const lose = (link: string) => (how === 'moved' ? onUnwatch(link, K, false) : onLinkLost(link))
    watch('a', K)
    watch('b', K)
    await settle(500)
    expect(told()).toEqual(came)
    lose('a')
    await settle(3_000)
    onUnwatch('b', K)
    await settle(3_000)
    expect(told()).toEqual([])
    // It comes back, and this node is sure again.
    watch('c', K)
    await settle(500)
    onUnwatch('c', K)
    await settle(3_000)
    expect(told()).toEqual([...came, ...gone])
  },
)

test('a key that another node had is told of by its new owner', async () => {
  const { watch, settle, told } = toldOfViewers()
  watch('a', K, { version: 'v1', ageMs: 5 })
  await settle(500)
  expect(told()).toEqual(came)
})

test('while the backend fails the latest is told again; of a key that went to another node meanwhile, nothing', async () => {
  const { watch, onUnwatch, settle, told, backend } = toldOfViewers({ outcome: { kind: 'failed', why: 'down' } })
  watch('a', K)
  watch('a', 'doc:2')
  await settle(3_000)
  onUnwatch('a', 'doc:2', false)
  await settle(3_000)
  backend.outcome = { kind: 'taken' }
  told()
  await settle(40_000)
  expect(told()).toEqual(came)
})

test('that nobody views a key is not told late, when another node may have viewers of it', async () => {
  const { watch, onUnwatch, settle, told, backend } = toldOfViewers()
  watch('a', K)
  await settle(500)
  backend.outcome = { kind: 'failed', why: 'down' }
  onUnwatch('a', K)
  await settle(15_000)
  expect(told().length).toBeGreaterThan(1)
  backend.outcome = { kind: 'taken' }
  await settle(40_000)
  expect(told()).toEqual([])
})

test('keys that are watched are told again every five minutes, others not', async () => {
  const { watch, get, onUnwatch, settle, told, freeze } = toldOfViewers()
  watch('a', K)
  watch('a', 'doc:2')
  watch('a', 'quiet:1')
  get('a', 'doc:3')
  await settle(500)
  onUnwatch('a', 'doc:2')
  await settle(3_000)
  told()
  freeze(300_000)
  await settle(500)
  expect(told()).toEqual(came)
})
