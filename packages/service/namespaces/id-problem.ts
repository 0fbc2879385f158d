// The ids of a namespace: how many segments they have, and which parameters in which order.
import { idOf, keyProblem, partsOf } from '@keycast/protocol'
import type { ValueNamespace } from './namespaces.ts'

export interface Ids {
  /** The fewest segments, and the most. Both 0: the namespace has one key, `name:`. */
  min: number
  max: number
}

export const ONE_SEGMENT: Ids = Object.freeze({ min: 1, max: 1 })

/**
 * The reason why an id cannot be one of a namespace, or `undefined` if it can. Without a limit of segments
 * `user:42/private` would be another path of the backend, open to a client that may read `user:42` alone.
 *
 * @param id has passed `keyProblem`
 * @returns a clause for a person to read
 */
export function idProblem(
  { ids = ONE_SEGMENT, query }: Partial<Pick<ValueNamespace, 'ids' | 'query'>>,
  id: string,
): string | undefined {
  // Most ids are one segment, and each key of each request comes here.
  if (id !== '' && !id.includes('/') && !id.includes('?')) return segmentsProblem(ids, 1)
  const { segments, parameters } = partsOf(id)
  return segmentsProblem(ids, segments.length) ?? parametersProblem(query, parameters)
}

/**
 * The same of a room, whose id is one segment without spaces. Those part what gateways and journals say of a room
 * (packages/backbone/wire): who reads a room named `room:1 members` would read the members of `room:1`.
 */
export const roomIdProblem = (id: string): string | undefined =>
  id.includes(' ') ? 'the id of a room has no spaces' : idProblem({}, id)

/** The reason why a text names no room. */
export const roomProblem = (text: string): string | undefined => keyProblem(text) ?? roomIdProblem(idOf(text))

function segmentsProblem({ min, max }: Ids, count: number) {
  if (count >= min && count <= max) return undefined
  if (max === 0) return 'this namespace has no ids: its key ends in the colon'
  if (count === 0) return 'the id is empty'
  const bound = min === max && max > 1 ? '' : ' at most'
  return `an id of this namespace has ${max} ${max === 1 ? 'segment' : 'segments'}${bound}`
}

/** One order, and each once: else one value would have several keys. */
function parametersProblem(query: ValueNamespace['query'], parameters: [name: string, value: string][]) {
  if (parameters.length === 0) return undefined
  if (!query) return 'keys of this namespace have no query'
  let last = -1
  for (const [name, value] of parameters) {
    const place = query.names.indexOf(name)
    if (place <= last)
      return `a query of this namespace has ${query.names.join(', ')}: in this order, each once at most`
    // RFC 9110 section 5.5: what is beyond ASCII has no sure meaning in a header.
    if (query.headers[name] !== undefined && /[^ -~]/.test(value)) return `${name} is sent as a header: ASCII only`
    last = place
  }
  return undefined
}
