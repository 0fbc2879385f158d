// An OpenID Connect provider as a process: oidc-provider over HTTPS, with one client and users who may be anybody. Its
// access tokens are JWTs for the audience "keycast" that say what the user may read.
//
// node oidc-issuer.ts CERTIFICATE KEY REDIRECT_URI
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
// @ts-expect-error it comes without types
import Provider from 'oidc-provider'

const [certificate, key, redirectUri] = process.argv.slice(2)
const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) })

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  const issuer = `https://127.0.0.1:${port}`
  const signingKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...signingKey, kid: 'first', use: 'sig', alg: 'ES256' }] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    clients: [
      {
        client_id: 'page',
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    features: {
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'https://keycast.example',
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: '',
          audience: 'keycast',
          accessTokenFormat: 'jwt',
          accessTokenTTL: 600,
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    extraTokenClaims: () => ({ keys: { read: ['doc:granted'] } }),
    findAccount: (_: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
  })
  server.on('request', provider.callback())
  console.log(JSON.stringify({ issuer }))
})
