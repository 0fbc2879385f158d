import { noContainment } from '@keycast/service'
import { createHandlers } from './index.ts'

test('a message type without handler is a mistake of this program, not of the client', () => {
  const { handle } = createHandlers({ counts: { received: {} }, containment: noContainment } as any)
  expect(() => handle({} as any, { type: 'steal' } as any)).toThrow('no handler')
})
