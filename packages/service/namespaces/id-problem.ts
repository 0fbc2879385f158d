// The number of segments that an id may have, by its namespace.
import type { Namespace } from './namespaces.ts'

/**
 * The reason why an id cannot be one of a namespace, or `undefined` if it can. Without this limit `user:42/private`
 * would be another path of the backend, open to a client that may read `user:42` alone.
 *
 * @param id has passed `keyProblem`
 * @returns a clause for a person to read
 */
export function idProblem({ idSegmentsMax = 1 }: Pick<Namespace, 'idSegmentsMax'>, id: string): string | undefined {
  let segments = 1
  for (let slash = id.indexOf('/'); slash !== -1; slash = id.indexOf('/', slash + 1)) segments++
  if (segments <= idSegmentsMax) return undefined
  return `an id of this namespace has ${idSegmentsMax} ${idSegmentsMax === 1 ? 'segment' : 'segments'} at most`
}
