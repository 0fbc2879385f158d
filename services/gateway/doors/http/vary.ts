// `Vary` (RFC 9110 section 12.5.5) is said by each part whose answer depends on a header of the request.
import type { FastifyReply } from 'fastify'

/** @param names of headers, comma-separated */
export function addVary(reply: FastifyReply, names: string) {
  const before = reply.getHeader('vary')
  reply.header('vary', before === undefined ? names : `${before}, ${names}`)
}
