// A real OpenID Connect provider as the issuer of tokens: a user signs in as with a browser, and the access token that the
// page is given opens Keycast, whose gateway had the provider's keys over HTTPS.
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { within } from '../support/deadline.ts'
import { run } from '../support/run.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

const REDIRECT = 'https://page.example/signed-in'

const folder = newFolder()
const certificate = join(folder, 'fullchain.pem')
await run(fileURLToPath(new URL('../../scripts/certificates', import.meta.url)), [folder, '127.0.0.1'])
const ca = readFileSync(certificate)

const issuer = await startIssuer()
const backend = await startBackend()
for (const id of ['granted', 'other']) backend.on(`/docs/${id}`, answers.json(documentOf(1)))
const system = await startSystem({
  namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: '100ms', timeout: PATIENCE } },
  access: {
    tokens: [{ jwks: `${issuer}/jwks`, issuer, audience: 'keycast', algorithms: ['ES256'] }],
  },
  // As an operator has a gateway trust a certificate authority of their own.
  env: { NODE_EXTRA_CA_CERTS: certificate },
})
const [gateway] = system.gateways

async function startIssuer() {
  const script = fileURLToPath(new URL('../support/oidc-issuer.ts', import.meta.url))
  const key = join(folder, 'privkey.pem')
  const child = spawn(process.execPath, [script, certificate, key, REDIRECT], { stdio: ['ignore', 'pipe', 'pipe'] })
  atEnd(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.on('data', chunk => {
    said += chunk
  })
  const listening = new Promise((resolve, reject) => {
    createInterface(child.stdout).on('line', line => line.startsWith('{') && resolve(JSON.parse(line).issuer))
    child.once('close', () => reject(new Error(said)))
  })
  return within(listening, () => `the provider listening: ${said}`) as Promise<string>
}

/** A browser, as far as signing in needs one: it keeps cookies, and is told where to go next. */
function createBrowser() {
  const cookies = new Map<string, string>()

  /** @param form posted */
  return async function go(
    url: string,
    form?: Record<string, string>,
  ): Promise<{ status: number; location: string | undefined; body: string }> {
    const body = form && new URLSearchParams(form).toString()
    const cookie = Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ')
    const sent = request(url, {
      ca,
      agent: false,
      method: form ? 'POST' : 'GET',
      headers: { ...(cookie && { cookie }), ...(form && { 'content-type': 'application/x-www-form-urlencoded' }) },
    })
    sent.end(body)
    const response = (await new Promise((resolve, reject) =>
      sent.on('response', resolve).on('error', reject),
    )) as IncomingMessage
    for (const set of response.headers['set-cookie'] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const { location } = response.headers
    const { statusCode: status = 0 } = response
    return { status, location: location && new URL(location, url).href, body: await text(response) }
  }
}

/** The authorization code flow with PKCE (RFC 7636). */
async function signIn(user: string): Promise<{ access_token: string; refresh_token: string }> {
  const go = createBrowser()
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    client_id: 'page',
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: 'openid offline_access',
    prompt: 'consent',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  let at = `${issuer}/auth?${query}`
  // The form of sign-in, that of consent, and the redirects between.
  for (let steps = 0; !at.startsWith(REDIRECT) && steps < 12; steps++) {
    let { status, location, body } = await go(at)
    const [, prompt] = /name="prompt" value="(\w+)"/.exec(body) ?? []
    if (prompt) ({ status, location, body } = await go(at, { prompt, login: user, password: 'any' }))
    if (!location) throw new Error(`${at} answered ${status}: ${body}`)
    at = location
  }
  const code = String(new URL(at).searchParams.get('code'))
  return grant(go, { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: verifier })
}

async function grant(go: ReturnType<typeof createBrowser>, form: Record<string, string>) {
  const { status, body } = await go(`${issuer}/token`, { client_id: 'page', ...form })
  if (status !== 200) throw new Error(body)
  return JSON.parse(body)
}

test('a user signs in at the provider, reads what its token grants, and renews with the next token', async () => {
  const tokens = await signIn('ann')
  const client = await connect(gateway.url)
  expect(await client.request({ type: 'auth', token: tokens.access_token })).toMatchObject({
    type: 'authed',
    user: 'ann',
  })
  await client.subscribe(['doc:granted'])
  await client.reaches('doc:granted', 1)
  expect(await client.request({ type: 'get', key: 'doc:other' })).toMatchObject({ code: 'forbidden' })

  const next = await grant(createBrowser(), { grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
  expect(next.access_token).not.toBe(tokens.access_token)
  expect(await client.request({ type: 'auth', token: next.access_token })).toMatchObject({
    type: 'authed',
    user: 'ann',
  })
  backend.on('/docs/granted', answers.json(documentOf(2)))
  await client.reaches('doc:granted', 2)
})

test('a token of another user is that user, and the id token, which is not for Keycast, is refused', async () => {
  const tokens = (await signIn('bob')) as any
  const client = await connect(gateway.url)
  expect(await client.request({ type: 'auth', token: tokens.id_token })).toMatchObject({ code: 'token_refused' })
  expect(await client.request({ type: 'auth', token: tokens.access_token })).toMatchObject({ user: 'bob' })
  expect(await gateway.metric('keycast_gateway_tokens_refused_total{reason="wrong_audience"}')).toBe(1)
})
