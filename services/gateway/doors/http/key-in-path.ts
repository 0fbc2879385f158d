// The key in the path of a request. Its id may hold `/`, so it is all of the path's rest. A bare `?` begins a query of the URL
// itself: what stands before would be the key of another value than the one that is meant.
import type { FastifyRequest } from 'fastify'
import type { HttpProblem } from './problems.ts'

const QUERY_OF_URL: HttpProblem = {
  code: 'bad_request',
  message: 'the query belongs into the key: write its ? as %3F, as in /v1/values/tasks:%3Fstatus=open',
}

/** @param request of a route that ends with `*` */
export const keyOf = ({ params }: FastifyRequest) => (params as { '*': string })['*']

/** @param key as the path names it */
export function queryProblem(
  { raw: { url } }: FastifyRequest,
  key: string,
  { takesQuery }: { takesQuery(key: string): boolean },
): HttpProblem | undefined {
  return takesQuery(key) && url?.includes('?') ? QUERY_OF_URL : undefined
}
