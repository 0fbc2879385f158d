import { noContainment } from '@keycast/service'
import { assembleDoors } from './index.ts'

test('a message type without a door is a mistake of this program, not of the client', () => {
  const parts = {
    settings: {},
    namespaces: {},
    links: {},
    access: {},
    topics: {},
    sessions: { rateLimit: { chargeEarly: () => 0 } },
  }
  const { handle } = assembleDoors({ ...parts, counts: { received: {} }, containment: noContainment } as any)
  expect(() => handle({} as any, { type: 'steal' } as any)).toThrow('no door')
})
