import { createEndings } from './endings.ts'

function setUp() {
  const session = { subscriptions: new Map() } as any
  const ended: string[] = []
  const end =
    (kind: string) =>
    ({ key }: any) => {
      ended.push(`${kind} ${key}`)
      session.subscriptions.delete(key)
    }
  session.subscriptions.set('tick:1', { key: 'tick:1', entry: {} })
  session.subscriptions.set('room:1', { key: 'room:1', room: {} })
  session.subscriptions.set('tick:2', { key: 'tick:2', entry: {} })
  const endings = createEndings({ subscriptions: { end: end('value') }, rooms: { end: end('room') } })
  return { session, ended, endings }
}

test('a key is ended as what it is, once', () => {
  const { session, ended, endings } = setUp()
  for (const key of ['room:1', 'tick:1', 'tick:1', 'tick:9']) endings.remove(session, key)
  expect(ended).toEqual(['room room:1', 'value tick:1'])
})
