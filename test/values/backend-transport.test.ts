// The way to a backend: its own certificate authority, compressed bodies, a trace for each request, and a line in the log
// where it fails.
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { documentOf } from '../support/backend.ts'
import { newFolder } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { run } from '../support/run.ts'
import { startSystem } from '../support/system.ts'

const folder = newFolder()
await run(fileURLToPath(new URL('../../scripts/certificates', import.meta.url)), [folder, '127.0.0.1'])
const certificate = join(folder, 'fullchain.pem')

let serve: (request: IncomingMessage, response: ServerResponse) => void
const requests: IncomingMessage[] = []
const server = createServer(
  { cert: readFileSync(certificate), key: readFileSync(join(folder, 'privkey.pem')) },
  (request, response) => {
    requests.push(request)
    serve(request, response)
  },
)
await once(server.listen(0, '127.0.0.1'), 'listening')
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/{id}`
// A busy machine is late: that is no failure here.
const namespaces = { doc: { url, refresh: '100ms', maxBytes: '1MiB', timeout: '20s' } }

test('a backend with a certificate of its own authority is asked, and what it compresses is read', async () => {
  const { gateways, fetchers } = await startSystem({ namespaces, fetcherEnv: { NODE_EXTRA_CA_CERTS: certificate } })
  const codings = { gzip: gzipSync, br: brotliCompressSync }
  let revision = 1
  let coding: keyof typeof codings = 'gzip'
  serve = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding, vary: 'accept-encoding' })
    response.end(codings[coding](documentOf(revision, 20_000)))
  }
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['doc:1'])
  await viewer.reaches('doc:1', 1)
  coding = 'br'
  revision = 2
  await viewer.reaches('doc:1', 2)
  expect(viewer.of('doc:1').data).toEqual(JSON.parse(documentOf(2, 20_000)))
  expect(requests[0].headers['accept-encoding']).toBe('gzip, br')

  // A bomb of 100 MB is the failure of its key, which is logged once, with the trace that the backend saw.
  serve = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
    response.end(bomb)
  }
  const before = requests.length
  await viewer.subscribe(['doc:2'])
  await viewer.until(() => viewer.of('doc:2').error?.code === 'too_large', 'that the bomb is too large')
  await eventually(() => requests.length > before + 2, 'more requests')
  const lines = fetchers[0].process.log().filter(({ msg }) => msg === 'fetches from a backend fail')
  expect(lines).toHaveLength(1)
  const { namespace, code, failures, traceparent } = lines[0]
  expect({ namespace, code, failures }).toEqual({ namespace: 'doc', code: 'too_large', failures: 1 })
  expect(requests.slice(before).map(({ headers }) => headers.traceparent)).toContain(traceparent)
  viewer.close()
})

const bomb = gzipSync(Buffer.alloc(100_000_000, '1'))

test('without that authority the key fails, and a file that is none is refused at start', async () => {
  serve = (_, response) => response.end('{}')
  const { gateways } = await startSystem({ namespaces })
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['doc:1'])
  await viewer.until(() => viewer.of('doc:1').error?.code === 'backend_unreachable', 'that it cannot be reached')
  expect(viewer.of('doc:1').error.message).toContain('SELF_SIGNED')
  viewer.close()

  const bad = join(folder, 'bad.pem')
  writeFileSync(bad, 'not a certificate')
  await expect(startSystem({ namespaces, fetcherEnv: { NODE_EXTRA_CA_CERTS: bad } })).rejects.toThrow(
    /NODE_EXTRA_CA_CERTS=.*bad\.pem: names a file without a certificate/,
  )
})
