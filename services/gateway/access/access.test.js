import { createEntry } from '../keys/entry.js'
import { createNamespaces, createTestGateway } from '../test-support.js'
import { createAccess } from './access.js'

const namespace = /** @type {import('@keycast/service').Namespace} */ (createNamespaces().get('tick'))

test('a key that breaks the grammar, or whose namespace does not exist, may not be asked for', () => {
  const { access } = createTestGateway().gateway
  expect(access.check('tick:1')).toBeUndefined()
  expect(access.check('no key')).toMatchObject({ code: 'bad_key', message: expect.stringContaining('namespace:id') })
  expect(access.check('no:key')).toMatchObject({ code: 'unknown_namespace', retryAfterMs: undefined })
})

test('the grammar of a key that is cached is not checked again', () => {
  const access = createAccess({
    namespaces: { names: [], get: () => undefined },
    cache: { peek: key => (key === 'tick:1' ? createEntry(key, namespace) : undefined) },
    now: () => 0,
  })
  expect(access.check('tick:1')).toBeUndefined()
  expect(access.check('tick:2')).toMatchObject({ code: 'unknown_namespace' })
})

test('a key that no door checked is never asked for', () => {
  const { gateway, backbone } = createTestGateway()
  for (const key of ['no key', 'no:key', 'tick:../x']) {
    expect(() => gateway.values.open(key)).toThrow('nobody checked')
  }
  expect(backbone.calls).toEqual([])
})
