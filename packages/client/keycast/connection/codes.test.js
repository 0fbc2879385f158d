// The client is packed without packages/protocol: this compares its own copies with that package.
import { readFileSync } from 'node:fs'
import { closeCodes, errorCodes } from '../../../protocol/codes.js'
import { finalCloseCodes } from './codes.js'

test('close codes that forbid a new connection are those of the protocol', () => {
  const final = Object.values(closeCodes).filter(({ reconnect }) => !reconnect)
  expect(finalCloseCodes).toEqual(final.map(({ code }) => code))
})

test('error codes are those of the protocol', () => {
  const source = readFileSync(new URL('codes.js', import.meta.url), 'utf8')
  const [, union] = source.match(/@typedef \{([^}]*)\} ErrorCode/) ?? []
  expect(union.match(/'(\w+)'/g)?.map(quoted => quoted.slice(1, -1))).toEqual(Object.keys(errorCodes))
})
