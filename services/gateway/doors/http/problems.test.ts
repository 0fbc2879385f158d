import { errorCodes } from '@keycast/protocol'
import { statusOf } from './problems.ts'

test('every code of the protocol has a status that is an error', () => {
  expect(Object.keys(statusOf).sort()).toEqual(Object.keys(errorCodes).sort())
  for (const status of Object.values(statusOf)) expect(status).toBeGreaterThanOrEqual(400)
})
