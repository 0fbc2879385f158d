import { createTestGateway } from '../test-support.ts'
import type { Session } from './session.ts'
import { createSessionLog } from './session-log.ts'

function setup() {
  let nowMs = 0
  const lines: unknown[][] = []
  const log = {
    debug: (...given: unknown[]) => lines.push(['debug', ...given]),
    warn: (...given: unknown[]) => lines.push(['warn', ...given]),
  } as any
  const sessionLog = createSessionLog({ log, now: () => nowMs })
  return { log, lines, sessionLog, pass: (ms: number) => (nowMs += ms) }
}

const session = (id: string) => ({ id }) as Session

test('a session that the gateway ended for its client’s fault is a warning under its id', () => {
  const { lines, sessionLog } = setup()
  sessionLog.opened(session('a'))
  sessionLog.ended(session('a'), 'client')
  sessionLog.ended(session('b'), 'abusive')
  expect(lines).toEqual([
    ['debug', { session: 'a' }, 'a session began'],
    ['debug', { session: 'a', reason: 'client' }, 'a session ended'],
    ['warn', { session: 'b', reason: 'abusive' }, 'a session was ended'],
  ])
})

test('a flood of such ends is counted, not logged', () => {
  const { lines, sessionLog, pass } = setup()
  for (let n = 0; n < 1_000; n++) sessionLog.ended(session(`${n}`), 'slow')
  expect(lines).toHaveLength(10)
  pass(10_000)
  sessionLog.ended(session('later'), 'slow')
  expect(lines.at(-1)?.[1]).toEqual({ session: 'later', reason: 'slow', unlogged: 990 })
})

test('a gateway logs its sessions under the id of their welcome', async () => {
  const { log, lines } = setup()
  const { connect } = createTestGateway({ log })
  const { connection } = await connect()
  connection.emit('close', 1006, Buffer.alloc(0))
  const id = connection.session?.id
  expect(lines.map(([, fields]) => fields)).toEqual([{ session: id }, { session: id, reason: 'lost' }])
})
