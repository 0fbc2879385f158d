import { AsyncLocalStorage } from 'node:async_hooks'
import NodeEnvironment from './node-environment.js'

test('a storage that is entered while a test file runs is disabled at its end', async () => {
  const config = { projectConfig: { globals: {}, testEnvironmentOptions: {} } } as any
  const environment = new NodeEnvironment(config, {} as any)
  const { run } = AsyncLocalStorage.prototype
  await environment.setup()
  const storage = new AsyncLocalStorage()
  expect(storage.run('a store', () => storage.getStore())).toBe('a store')
  storage.enterWith('another')
  expect(storage.getStore()).toBe('another')
  await environment.teardown()
  expect(storage.getStore()).toBeUndefined()
  expect(AsyncLocalStorage.prototype.run).toBe(run)
})
