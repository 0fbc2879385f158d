// The Python client: its own tests, its types, and a whole Keycast for it to be used with.
import { randomBytes } from 'node:crypto'
import { answers, startBackend } from '../support/backend.ts'
import { python } from '../support/python.ts'
import { startSite } from '../support/sites.ts'
import { API_TOKEN, PATIENCE, startRooms, startSystem } from '../support/system.ts'

/** Signs the tokens of the tests. */
const JWT_SECRET = randomBytes(48).toString('base64')

/** The requests of the tests in Python over HTTP: other contents of the backend, and the end of a process. */
async function startControl() {
  const backend = await startBackend()
  const source = { url: `${backend.origin}/doc/{id}`, refresh: '100ms', timeout: PATIENCE }
  const system = await startSystem({
    namespaces: { doc: source, own: source },
    access: {
      anonymous: { read: ['doc:*'] },
      tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }],
    },
    env: { JWT_SECRET },
  })
  let [gateway] = system.gateways

  const rooms = await startRooms({
    namespaces: { room: { members: 'named', names: 'unique', history: { messages: 1_000 } } },
    access: { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] } },
  })
  let [ofRooms] = rooms.gateways

  /** Each gives the gateway to connect to. */
  const deeds: Record<string, (body: any) => Promise<{ url: string; internal: string } | undefined>> = {
    async '/publish'({ path, text, type = 'application/json' }) {
      backend.on(path, answers.content(text, type))
    },
    async '/kill'() {
      const old = gateway
      gateway = await system.startGateway()
      await old.process.kill()
    },
    async '/stop'() {
      const old = gateway
      gateway = await system.startGateway()
      old.process.signal('SIGTERM')
    },
    '/rooms': async () => ofRooms,
    async '/rooms/kill-gateway'() {
      const old = ofRooms
      ofRooms = await rooms.startGateway()
      await old.process.kill()
      return ofRooms
    },
    async '/rooms/kill-journal'() {
      const { journal } = rooms
      journal.process().signal('SIGKILL')
      await journal.process().exited
      await journal.restart()
      return ofRooms
    },
  }
  return startSite(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { url, internal } = (await deeds[String(request.url)](JSON.parse(body))) ?? gateway
    response.end(JSON.stringify({ url, internal }))
  })
}

test('it does as the transcripts say, and follows a whole Keycast through losses', async () => {
  const env = {
    KEYCAST_TEST_CONTROL: await startControl(),
    KEYCAST_TEST_SECRET: JWT_SECRET,
    KEYCAST_TEST_API_TOKEN: API_TOKEN,
  }
  const output = await python(['pytest', 'tests', 'system_tests'], env)
  expect(output).toMatch(/ passed in /)
})

test('its types hold', async () => {
  expect(await python(['mypy', '--cache-dir=/dev/null'])).toContain('no issues found')
})
