// An upgrade whose token takes long to check: what may happen meanwhile, and how the upgrade ends.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { createContainment } from '@keycast/service'
import type { Verified } from '../access/tokens/tokens.ts'
import { createCounts } from '../counts.ts'
import type { Account } from './accounts.ts'
import { createAdmission } from './admission.ts'
import { readOrigins } from './allowed-origins.ts'
import { createUpgrades } from './upgrade.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const handshakeWith = (headers: string[]) =>
  [
    'GET /ws HTTP/1.1',
    'Host: 127.0.0.1',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Authorization: Bearer a.b.c',
    ...headers,
    '\r\n',
  ].join('\r\n')

const verified = { user: 'ann' } as Verified

/**
 * A server, and a client whose token is being checked. The test decides when the check ends, and how.
 *
 * @param options `headers` of the client, beside the token's; `fullAccount`: that of every client
 */
async function setup({
  headers = [],
  origins = '*',
  sessions = 0,
  fullAccount,
}: {
  headers?: string[]
  origins?: string
  sessions?: number
  fullAccount?: Partial<Account>
} = {}) {
  const warnings: unknown[][] = []
  let isDraining = false
  let isRevoked = false
  const opened: unknown[] = []
  const timers = new Set<() => void>()
  let conclude: (result: { verified: typeof verified }) => void = () => {}
  const verifying = new Promise<{ verified: typeof verified }>(resolve => {
    conclude = resolve
  })
  const counts = createCounts()
  const containment = createContainment({ now: () => 0, ends: ['upgrade'], log: { error() {} } as any })
  const server = createServer()
  createUpgrades({
    accept: ((_: any, __: any, ___: any, then: (transport: any) => void) => then({})) as any,
    open: ((_: any, from: unknown) => opened.push(from)) as any,
    admission: createAdmission({
      identify: { peerOf: () => ({ address: '127.0.0.1', isNamed: true }), verifyRequest: () => verifying },
      revocations: { isRevoked: () => isRevoked },
      accounts: { of: () => ({ account: fullAccount }), hasRoom: () => fullAccount === undefined } as any,
      unready: () => (isDraining ? 'draining' : sessions >= 1 ? 'full' : undefined),
      sessionsMax: 1,
      isAllowedOrigin: readOrigins(origins),
      counts,
      log: { warn: (...line: unknown[]) => void warnings.push(line) },
      now: () => 0,
    }),
    containment,
    after(_, run) {
      timers.add(run)
      return () => timers.delete(run)
    },
  }).attach(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  cleanUps.push(() => new Promise(resolve => server.close(resolve)))

  const upgrading = once(server, 'upgrade')
  const { port } = server.address() as AddressInfo
  const client = connect(port, '127.0.0.1').on('error', () => {})
  cleanUps.push(() => client.destroy())
  client.write(handshakeWith(headers))
  const [, socket] = await upgrading
  cleanUps.push(() => socket.destroy())
  return {
    client,
    /** Of the server. */
    socket,
    opened,
    timers,
    counts,
    contained: containment.counts,
    drain() {
      isDraining = true
    },
    revoke() {
      isRevoked = true
    },
    /** The token turns out to be good. @param who whom it names */
    async good(who?: { user?: string }) {
      conclude({ verified: { ...verified, ...who } as typeof verified })
      await verifying
    },
    warnings,
    /** Another client with the same headers. */
    async again() {
      const other = connect(port, '127.0.0.1').on('error', () => {})
      cleanUps.push(() => other.destroy())
      other.write(handshakeWith(headers))
      const [chunk] = await once(other, 'data')
      return String(chunk)
    },
    /** The client's answer. */
    async answer() {
      const [chunk] = await once(client, 'data')
      return String(chunk)
    },
    /** The client's answer: its status. */
    async status() {
      const [chunk] = await once(client, 'data')
      return Number(/^HTTP\/1\.1 (\d+)/.exec(String(chunk))?.[1])
    },
  }
}

test('a good token makes a session', async () => {
  const { good, opened } = await setup()
  await good()
  expect(opened).toEqual([{ peer: { address: '127.0.0.1', isNamed: true }, verified }])
})

test.each(['reset', 'ended'])('a client whose connection was %s meanwhile becomes no session', async how => {
  const { client, socket, good, opened, counts } = await setup()
  // Node takes an upgraded connection off its server: nothing reads it, or sees it end, until something does.
  const gone = new Promise(resolve => socket.once(how === 'reset' ? 'close' : 'end', resolve))
  if (how === 'reset') client.resetAndDestroy()
  else client.end()
  socket.resume()
  await gone
  await good()
  expect(opened).toEqual([])
  expect(counts.refused).toEqual(createCounts().refused)
})

test('a token that was revoked meanwhile is refused', async () => {
  const { good, opened, revoke, status } = await setup()
  revoke()
  const answered = status()
  await good()
  expect(await answered).toBe(401)
  expect(opened).toEqual([])
})

test('a gateway that began to stop meanwhile sends the client elsewhere', async () => {
  const { good, opened, drain, status } = await setup()
  drain()
  const answered = status()
  await good()
  expect(await answered).toBe(503)
  expect(opened).toEqual([])
})

test('a page of another origin is told which, and the log tells the operator once a minute', async () => {
  const { answer, again, warnings } = await setup({
    headers: ['Origin: https://elsewhere.example'],
    origins: 'https://example.org',
  })
  const said = 'pages of https://elsewhere.example may not connect: GATEWAY_ORIGINS does not name this origin'
  expect(await answer()).toContain(`\r\n\r\n${said}\n`)
  expect(await again()).toContain(said)
  expect(warnings).toEqual([
    [{ reason: 'origin', origin: 'https://elsewhere.example' }, expect.stringContaining('GATEWAY_ORIGINS')],
  ])
})

test('of a very long origin the answer and the log repeat the beginning', async () => {
  const { answer, warnings } = await setup({
    headers: [`Origin: ${'x'.repeat(5_000)}`],
    origins: 'https://example.org',
  })
  expect((await answer()).length).toBeLessThan(700)
  expect(JSON.stringify(warnings).length).toBeLessThan(700)
})

test.each([
  ['user ann', 'GATEWAY_SESSIONS_PER_USER_MAX', 'raise GATEWAY_SESSIONS_PER_USER_MAX'],
  ['address 192.0.2.7', 'GATEWAY_SESSIONS_PER_ADDRESS_MAX', 'GATEWAY_TRUSTED_PROXIES'],
])(
  'too many sessions of %s: the client is told which limit, the operator who and the remedy',
  async (name, setting, remedy) => {
    const setUp = await setup({ fullAccount: { name, sessions: 100, sessionsMax: 100 } })
    const answered = setUp.answer()
    await setUp.good({ user: name.startsWith('user') ? 'ann' : undefined })
    const [whose] = name.split(' ')
    expect(await answered).toContain(`this ${whose} has 100 sessions at this gateway, and ${setting} allows no more\n`)
    expect(setUp.warnings).toEqual([
      [{ reason: 'account', account: name, sessionsMax: 100 }, expect.stringContaining(remedy)],
    ])
  },
)

test.each([
  ['user ann', 'user'],
  ['address 192.0.2.7', 'address'],
])('%s was refused as much as it may be: the client is told to send less', async (name, whose) => {
  const { answer, good, warnings, counts } = await setup({ fullAccount: { name, sessions: 1, sessionsMax: 100 } })
  const answered = answer()
  await good({ user: whose === 'user' ? 'ann' : undefined })
  expect(await answered).toMatch(/^HTTP\/1\.1 429 [\s\S]*Retry-After: 5\r\n/)
  expect(await answered).toContain(`this ${whose} sends far more requests than it may: wait, and send fewer\n`)
  expect([counts.refused.account, warnings]).toEqual([1, []])
})

test('a gateway that is full tells its operator what to do', async () => {
  const { answer, warnings, counts } = await setup({ sessions: 1 })
  expect(await answer()).toMatch(/^HTTP\/1\.1 503 [\s\S]*Retry-After: 5\r\n[\s\S]*this gateway is full\n$/)
  expect(counts.refused).toMatchObject({ full: 1 })
  expect(warnings).toEqual([[{ reason: 'full', sessionsMax: 1 }, expect.stringContaining('GATEWAY_SESSIONS_MAX')]])
})

test('a client that does not read why it is refused is cut after a while', async () => {
  const { client, socket, good, drain, timers } = await setup()
  client.pause()
  socket.write(Buffer.alloc(32 * 1024 ** 2))
  drain()
  await good()
  const [cut] = timers
  cut()
  expect([socket.destroyed, timers.size]).toEqual([true, 1])
  await once(socket, 'close')
  expect(timers.size).toBe(0)
})

test('an error while an upgrade is handled ends its connection, and the next client is answered', async () => {
  const { good, client, again, drain, opened, contained } = await setup()
  opened.push = () => {
    throw new TypeError('a bug')
  }
  const gone = once(client, 'close')
  await good()
  await gone
  expect(contained).toEqual({ upgrade: 1, process: 0 })
  drain()
  expect(await again()).toContain('503 Service Unavailable')
  expect(contained).toEqual({ upgrade: 1, process: 0 })
})
