// The cursor of GET /v1/wait: `O.E`. O is the number of the version that the client holds (`order`, see
// packages/backbone/backbone.ts). E is the edge at which a request ends that nothing changed for. All clients that hold
// a version send the same URL until the next edge, so a cache in front makes one request of theirs.
import { fnv1a } from '@keycast/backbone'

export interface Cursor {
  order: number
  edge: number
}

/** From one edge to the next. Proxies give up after 30 s and more. */
export const EDGE_MS = 20_000

/** Versions are 22 characters of base64url; the numbers are whole. Nothing else may stand in the query, in no other order. */
const queryGrammar = /^[^?]*\?after=([\w-]{1,64})&cursor=(\d{1,15})\.(\d{1,15})$/

/**
 * Every other query would be another URL for the same answer: a stranger could fill a cache with them.
 *
 * @param url of a request
 * @returns `undefined` where the query is not exactly `after=VERSION&cursor=O.E`
 */
export function readWaitQuery(url: string): ({ after: string } & Cursor) | undefined {
  const [, after, order, edge] = queryGrammar.exec(url) ?? []
  return after === undefined ? undefined : { after, order: Number(order), edge: Number(edge) }
}

export const cursorText = ({ order, edge }: Cursor) => `${order}.${edge}`

/** The number of the first edge of a key after a time. @param wallMs since 1970 */
export const edgeAfter = (key: string, wallMs: number) => Math.floor((wallMs - shiftOf(key)) / EDGE_MS) + 1

/** @returns milliseconds since 1970 */
export const timeOfEdge = (key: string, edge: number) => edge * EDGE_MS + shiftOf(key)

/** Keys have their edges at different times, so that not all requests come back at once. */
const shiftOf = (key: string) => (fnv1a(key) >>> 0) % EDGE_MS
