import { createEntry } from '../keys/entry.js'
import { createNamespaces, createTestGateway } from '../test-support.js'
import { createAccess } from './access.js'
import { createRights, readRule } from './rights.js'

const namespace = /** @type {import('@keycast/service').Namespace} */ (createNamespaces().get('tick'))

/** @param {string[]} read @param {boolean} [user] */
const rightsTo = (read, user = false) => {
  const rule = (/** @type {unknown} */ written) => readRule(written, { user: false, strict: true }).rule
  const rights = createRights({ anonymous: rule({ read }), everyone: rule({}) })
  return user ? rights.of('ann') : rights.anonymous
}

const all = rightsTo(['*:**'])

/** @param {string[]} [cached] */
const setup = (cached = []) => {
  const counts = { accessRefused: { unauthenticated: 0, forbidden: 0 } }
  /** @type {string[]} */
  const looked = []
  const access = createAccess({
    namespaces: createNamespaces({ tick: {}, file: { idSegmentsMax: 3 } }),
    cache: {
      peek(key) {
        looked.push(key)
        return cached.includes(key) ? createEntry(key, namespace) : undefined
      },
    },
    counts,
    now: () => 0,
  })
  return { ...access, counts, looked }
}

test('a key that breaks the grammar, or whose namespace does not exist, may not be asked for', () => {
  const { check, checkForOperator } = setup()
  for (const ask of [checkForOperator, (/** @type {string} */ key) => check(all, 'read', key)]) {
    expect(ask('tick:1')).toBeUndefined()
    expect(ask('no key')).toMatchObject({ code: 'bad_key', message: expect.stringContaining('namespace:id') })
    expect(ask('no:key')).toMatchObject({ code: 'unknown_namespace', retryAfterMs: undefined })
  }
})

test('an id has no more segments than its namespace allows: what lies below a key is another path of the backend', () => {
  const { check } = setup()
  expect(check(all, 'read', 'tick:42/private')).toMatchObject({ code: 'bad_key' })
  expect(check(all, 'read', 'file:a/b/c')).toBeUndefined()
  expect(check(all, 'read', 'file:a/b/c/d')).toMatchObject({ code: 'bad_key' })
})

test('rights are asked before cache and namespaces: a forbidden key answers alike whether it exists or not', () => {
  const { check, looked, counts } = setup(['tick:cached'])
  const keys = ['tick:cached', 'tick:absent', 'no:namespace', 'tick:too/deep']
  const [first, ...others] = keys.map(key => check(rightsTo(['tick:1']), 'read', key))
  expect(first).toMatchObject({ code: 'unauthenticated', message: 'this needs a token, or there is no such key' })
  for (const other of others) expect(other).toEqual(first)
  for (const key of keys) expect(check(rightsTo(['tick:1'], true), 'read', key)).toMatchObject({ code: 'forbidden' })
  expect(looked).toEqual([])
  expect(counts.accessRefused).toEqual({ unauthenticated: 4, forbidden: 4 })
})

test('the operator is bound by no rights', () => {
  expect(setup().checkForOperator('tick:1')).toBeUndefined()
})

test('a key that no door checked is never asked for', () => {
  const { gateway, backbone } = createTestGateway()
  for (const key of ['no key', 'no:key', 'tick:../x']) {
    expect(() => gateway.values.open(key)).toThrow('nobody checked')
  }
  expect(backbone.calls).toEqual([])
})
