// Where a token for a backend comes from: a file, or a token endpoint (RFC 6749 section 4.4, client credentials).
import { readFile } from 'node:fs/promises'
import type { ServiceToken } from '@keycast/service'

const TIMEOUT_MS = 5_000

const BYTES_MAX = 64 * 1_024

/** For a token that does not say how long it lives: RFC 6749 leaves that open. */
const LIVES_SECONDS_DEFAULT = 300

/** As in a header: RFC 6750 section 2.1. */
const grammar = /^[A-Za-z0-9._~+/-]+=*$/

/** @throws {Error} whose message shows nothing of the content */
export async function readTokenFile(path: string): Promise<string> {
  return checked((await readFile(path, 'utf8')).trim(), path)
}

/** @throws {Error} whose message shows no secret */
export async function requestToken({ url, client, secret, scope }: Exclude<ServiceToken, { file: string }>) {
  // Few need it, and it takes a tenth of a second to load.
  const { axios } = await import('@keycast/service/axios')
  const response = await axios
    .post(url, new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) }), {
      // RFC 6749 section 2.3.1: encoded as in a form first.
      auth: { username: encodeURIComponent(client), password: encodeURIComponent(secret) },
      headers: { accept: 'application/json' },
      timeout: TIMEOUT_MS,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      maxContentLength: BYTES_MAX,
      maxRedirects: 0,
      proxy: false,
      responseType: 'text',
      validateStatus: null,
    })
    .catch(error => {
      // axios's own error carries the request, with the secret in it.
      throw new Error(`${url}: no answer (${error.code ?? error.name})`)
    })
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}`)
  const { access_token: token, token_type: type, expires_in: seconds } = parsed(response.data)
  if (typeof token !== 'string' || String(type).toLowerCase() !== 'bearer') {
    throw new Error(`${url} answered no bearer token (RFC 6749 section 5.1)`)
  }
  const livesSeconds = Number(seconds) > 0 ? Number(seconds) : LIVES_SECONDS_DEFAULT
  return { token: checked(token, url), livesMs: livesSeconds * 1_000 }
}

/** @returns the fields of an object, whatever the text is */
function parsed(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

function checked(token: string, from: string) {
  if (!grammar.test(token)) throw new Error(`${from} holds no token: one has no spaces and no line breaks`)
  return token
}
