// A set of public keys over HTTPS, as identity providers publish it: asked for under TLS that is checked.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exportJWK, generateKeyPair } from 'jose'
import { createJwks } from '../../services/gateway/access/tokens/jwks.ts'
import { newFolder } from '../support/cleanup.ts'
import { run } from '../support/run.ts'

const certificates = fileURLToPath(new URL('../../scripts/certificates', import.meta.url))

const folder = newFolder()
let server: Server
let certificate: Buffer
let keys: unknown[]

beforeAll(async () => {
  await run(certificates, [folder, '127.0.0.1'])
  certificate = readFileSync(join(folder, 'fullchain.pem'))
  const key = readFileSync(join(folder, 'privkey.pem'))
  server = createServer({ cert: certificate, key }, (_, response) => response.end(JSON.stringify({ keys })))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { publicKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  keys = Array.from({ length: 1_000 }, (_, n) => ({ ...jwk, kid: `key ${n}` }))
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

const setup = ({ host = '127.0.0.1', agent }: { host?: string; agent?: Agent } = {}) => {
  const events: string[] = []
  const { port } = server.address() as AddressInfo
  const jwks = createJwks({
    url: `https://${host}:${port}/.well-known/jwks.json`,
    now: () => 0,
    agent,
    events: { ok: count => events.push(`ok ${count}`), failed: problem => events.push(problem) },
  })
  return { jwks, events }
}

test('a set of 1,000 keys is fetched from a provider whose certificate is trusted', async () => {
  const agent = new Agent({ ca: certificate })
  const { jwks, events } = setup({ agent })
  expect(await jwks.keyFor({ algorithm: 'ES256', kid: 'key 999' })).toHaveProperty('key')
  expect(events).toEqual(['ok 1000'])
  agent.destroy()
})

test('a provider whose certificate nobody vouches for is not believed', async () => {
  const { jwks, events } = setup()
  expect(await jwks.keyFor({ algorithm: 'ES256', kid: 'key 999' })).toEqual({ reason: 'keys_unavailable' })
  expect(events).toEqual([expect.stringMatching(/^cannot be reached: (DEPTH_ZERO_)?SELF_SIGNED/)])
})

test('nor is one whose certificate is for another name', async () => {
  const agent = new Agent({ ca: certificate })
  const { jwks, events } = setup({ host: 'localhost', agent })
  expect(await jwks.keyFor({ algorithm: 'ES256', kid: 'key 999' })).toEqual({ reason: 'keys_unavailable' })
  expect(events).toEqual([expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID')])
  agent.destroy()
})
