// Tells viewers apart: two tokens are one viewer's if a backend judges them alike. It judges by the user, and by claims such
// as the scope or the tenant, which an entry of `access.tokens` lists. A claim that is new with each token cannot be among
// them, or each renewal would be another viewer.
import { hash } from 'node:crypto'
import { userName, viewerOfUser } from '@keycast/backbone'

/** What backends commonly judge by: RFC 9068, RFC 8693, RFC 9396, and the claims of the large identity providers. */
export const VIEWER_CLAIMS: readonly string[] = Object.freeze([
  'iss',
  'aud',
  'client_id',
  'azp',
  'scope',
  'scp',
  'roles',
  'groups',
  'entitlements',
  'permissions',
  'act',
  'authorization_details',
  'acr',
  'tid',
  'org_id',
])

/** Claims that are new with each token. */
export const TOKEN_CLAIMS: readonly string[] = Object.freeze(['exp', 'iat', 'nbf', 'jti'])

/** `act` names who acts for whom, one within the other; more levels nobody writes. */
const DEPTH_MAX = 8

export class NotComparable extends Error {}

/**
 * The viewer of a token, as it is named beyond this gateway: digests, for the user's name is nobody else's business. The
 * first of them is alike for all viewers of a user, so that a user's values can be refreshed.
 *
 * @param user the prefix of the token's issuer and its `sub`: no other issuer has such a user
 * @param claims of the token
 * @param listed the claims by which viewers differ
 * @throws {NotComparable}
 */
export function viewerName(user: string, claims: Record<string, unknown>, listed: readonly string[]): string {
  const judged = listed
    .filter(claim => Object.hasOwn(claims, claim))
    .map(claim => [claim, isWords(claim) ? sortWords(claims[claim]) : comparable(claims[claim])])
  // A user's name holds no control characters.
  const text = judged.length === 0 ? user : `${user}\n${JSON.stringify(sortAsText(judged))}`
  return viewerOfUser(userName(user), hash('sha256', text, 'base64url'))
}

/** RFC 6749 section 3.3: a list in one text, whose order says nothing. */
const isWords = (claim: string) => claim === 'scope' || claim === 'scp'

const sortWords = (value: unknown) =>
  typeof value === 'string' ? [...new Set(value.split(' '))].sort().join(' ') : comparable(value)

/**
 * A value in the form in which values are compared: lists as sets, fields in order.
 *
 * @throws {NotComparable}
 */
function comparable(value: unknown, depth = 0): unknown {
  if (depth > DEPTH_MAX) throw new NotComparable()
  // Two numbers that large may be read as one: two tenants would be one viewer.
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) throw new NotComparable()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return sortAsText(value.map(each => comparable(each, depth + 1)))
  return { of: sortAsText(Object.entries(value).map(([name, each]) => [name, comparable(each, depth + 1)])) }
}

/** Each once. */
function sortAsText(values: unknown[]) {
  const byText = new Map(values.map(each => [JSON.stringify(each), each]))
  return [...byText].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, each]) => each)
}
