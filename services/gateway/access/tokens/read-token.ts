// Takes a token apart (JWT, RFC 7519), before anything in it is believed.
import { typeOf } from './token-type.ts'

/** Three parts in base64url; the last is empty where the header says that nobody signed (`none`). */
const tokenGrammar = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/

/** @returns `undefined`: it is no token */
export function readToken(
  token: string,
):
  | { algorithm: string; type: string | undefined; kid: string | undefined; claims: Record<string, unknown> }
  | undefined {
  if (!tokenGrammar.test(token)) return undefined
  const [head, payload] = token.split('.', 2)
  const header = readObject(head)
  const claims = readObject(payload)
  if (!header || !claims || typeof header.alg !== 'string') return undefined
  const { alg, typ, kid, crit } = header
  // An extension that must be understood, and none is here (RFC 7515 section 4.1.11).
  if (crit !== undefined) return undefined
  if (kid !== undefined && typeof kid !== 'string') return undefined
  if (typ !== undefined && typeof typ !== 'string') return undefined
  return { algorithm: alg, type: typ === undefined ? undefined : typeOf(typ), kid, claims }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** @param part in base64url */
function readObject(part: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(utf8.decode(Buffer.from(part, 'base64url')))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
