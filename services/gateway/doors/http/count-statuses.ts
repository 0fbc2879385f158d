// Counts requests by the status they were answered with.
import type { onResponseHookHandler } from 'fastify'
import { countOne } from '../../counts.ts'

export function countStatuses(counter: Record<string, number>): onResponseHookHandler {
  return (_, reply, done) => {
    countOne(counter, String(reply.statusCode))
    done()
  }
}
