import { viewerKey } from '@keycast/backbone'
import { createNamespaces } from '../test-support.ts'
import { createOwnKeys } from './own-keys.ts'

const keys = createOwnKeys(createNamespaces({ tick: {}, own: { isPerUser: true } }))

test("a user's own value has a key of its own, which nobody reaches without saying for whom", () => {
  expect(keys.wireKeyOf(undefined, 'tick:1')).toBe('tick:1')
  expect(keys.wireKeyOf({ name: 'ann' }, 'own:1')).toBe(viewerKey('own:1', 'ann'))
  expect(() => keys.wireKeyOf(undefined, 'own:1')).toThrow('no viewer')
})
