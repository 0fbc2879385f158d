import { readSettings } from '@keycast/service'
import { conflictsOf, settings } from './settings.ts'

const start = (env: Record<string, string>) =>
  readSettings(settings, { name: 'data-provider', about: 'x', check: conflictsOf, env, argv: [] })

test('it runs for trying alone: viewers must not be shown what is made up', () => {
  expect(() => start({})).toThrow('KEYCAST_PROFILE=production: this backend only makes content up')
  expect(start({ KEYCAST_PROFILE: 'try' })).toMatchObject({ port: 3_000 })
})
