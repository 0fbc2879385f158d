// The tokens of the backend and the operator: each has a name and says what its holder may do.
import { createHash, timingSafeEqual } from 'node:crypto'

/** `admin` may do all, and alone looks into keys, rooms and rights, and deletes. */
export const scopes = ['refresh', 'put', 'publish', 'revoke', 'admin'] as const

export type Scope = (typeof scopes)[number]

export interface ApiToken {
  name: string
  scopes: readonly Scope[]
  token: string
}

const NAME = /^[A-Za-z0-9_.-]{1,64}$/

/** Letters of base64 in either alphabet, as RFC 6750 section 2.1 has them. */
const TOKEN = /^[A-Za-z0-9._~+/=-]{8,512}$/

/**
 * @param text entries `NAME:SCOPE[,SCOPE]:TOKEN`, separated by white space
 * @throws {Error} with the first thing that is wrong with it, and without a token in it
 */
export function readApiTokens(text: string): ApiToken[] {
  const tokens: ApiToken[] = []
  for (const [index, entry] of text.split(/\s+/).filter(Boolean).entries()) {
    const [name, given, ...rest] = entry.split(':')
    const token = rest.join(':')
    // A text that is no name may be a token.
    if (given === undefined || !NAME.test(name)) {
      throw new Error(`entry ${index + 1} must be NAME:SCOPES:TOKEN, as in backend:refresh,publish:…`)
    }
    const named = given.split(',')
    const unknown = named.findIndex(scope => !isScope(scope))
    if (unknown >= 0) throw new Error(`${name}: scope ${unknown + 1} is not one of ${scopes.join(', ')}`)
    if (!TOKEN.test(token)) throw new Error(`${name}: the token must have 8 to 512 letters, digits or ._~+/=-`)
    if (tokens.some(each => each.name === name)) throw new Error(`${name} is there twice`)
    if (tokens.some(each => each.token === token)) throw new Error(`${name} has the token of another entry`)
    tokens.push({ name, scopes: named.filter(isScope), token })
  }
  return tokens
}

const isScope = (text: string): text is Scope => scopes.some(scope => scope === text)

/**
 * Finds the holder of a token. It is compared with every one, by digest, so that neither its content nor its length shows
 * in the time taken.
 */
export function createHolders(tokens: ApiToken[]) {
  const known = tokens.map(({ token, ...holder }) => ({ holder, expected: digest(token) }))
  return (token: string): Omit<ApiToken, 'token'> | undefined => {
    const given = digest(token)
    let found: Omit<ApiToken, 'token'> | undefined
    for (const { holder, expected } of known) if (timingSafeEqual(given, expected)) found = holder
    return found
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest()
