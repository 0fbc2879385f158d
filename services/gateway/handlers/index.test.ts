import { noContainment } from '@keycast/service'
import { createHandlers } from './index.ts'

test('a message type without handler is a mistake of this program, not of the client', () => {
  const { handle } = createHandlers(/** @type {any} */ ({ counts: { received: {} }, containment: noContainment }))
  expect(() => handle(/** @type {any} */ ({}), /** @type {any} */ ({ type: 'steal' }))).toThrow('no handler')
})
