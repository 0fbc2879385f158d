// Encrypted links: who is admitted, who is refused, and that a refusal is seen in the log.
import { createZeromqBackbone, createZeromqHub } from './backbone-zeromq.ts'
import { createCurveKeyPair, type LinkCurve } from './curve.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const server = createCurveKeyPair()
const client = createCurveKeyPair()

// One node for the whole file: libzmq knows one ZAP handler a process, and frees its address some time after it closed.
let onWarning: (line: string) => void = () => {}
/** A minute passes between any two refusals, so each is said. */
let minutes = 0
const hub = createZeromqHub({
  now: () => 60_000 * ++minutes,
  host: '0.0.0.0',
  requestsPort: 0,
  answersPort: 0,
  log: {
    ...silent,
    warn: (_: unknown, text: string) => onWarning(text),
  } as any,
  curve: { secretKey: server.secretKey, clientKeys: [client.publicKey] },
})
let nodes = ''
beforeAll(async () => {
  await hub.start({
    onWatch: (link, { key }) => hub.tell(link, key),
    onUnwatch() {},
    onGet() {},
    onCancelGet() {},
    onLinkLost() {},
    answersFor: (_, key) => ({
      answers: [{ type: 'failed', key, code: 'not_found', message: 'nothing here', ageMs: 0 }],
      more: false,
    }),
  })
  const { requestsPort, answersPort } = hub.ports()
  nodes = `127.0.0.1:${requestsPort}:${answersPort}`
})
afterAll(() => hub.stop())

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

const nextWarning = () =>
  new Promise(resolve => {
    onWarning = resolve
  })

async function watchThrough(curve?: LinkCurve) {
  let onAnswer: (answer: unknown) => void = () => {}
  const answered = new Promise(resolve => {
    onAnswer = resolve
  })
  const backbone = createZeromqBackbone({
    nodes,
    messageBytesMax: 2 ** 20,
    events: { held: () => undefined, onAnswer },
    log: silent,
    curve,
  })
  await backbone.start()
  backbone.watch('a:1')
  cleanups.push(() => backbone.stop())
  return { answered, backbone }
}

test('a client whose key is allowed is served, on any address', async () => {
  const { answered } = await watchThrough({ secretKey: client.secretKey, serverKey: server.publicKey })

  expect(await answered).toMatchObject({ key: 'a:1', code: 'not_found' })
})

test.each([
  ['a client whose key is not allowed', { secretKey: createCurveKeyPair().secretKey, serverKey: server.publicKey }],
  ['a client with the wrong server key', { secretKey: client.secretKey, serverKey: createCurveKeyPair().publicKey }],
  ['a client without CURVE', undefined],
])('%s is refused, and the log says so', async (_, curve) => {
  const warned = nextWarning()

  const { backbone } = await watchThrough(curve)

  expect(await warned).toContain('was refused')
  expect(backbone.nodesAlive()).toBe(0)
})

test.each([
  ['secretKey', { secretKey: 'hunter2', serverKey: server.publicKey }],
  ['serverKey', { secretKey: client.secretKey, serverKey: 'hunter2' }],
])('a %s that is none is refused at the start, without being repeated', (_, curve) => {
  const events = { held: () => undefined, onAnswer() {} }
  const create = () => createZeromqBackbone({ nodes: '127.0.0.1', messageBytesMax: 1, events, log: silent, curve })
  expect(create).toThrow('is no key')
  expect(create).not.toThrow('hunter2')
})
