// The answer to a call that every gateway must hear of: it is sent once the others were told.
import { type Problem, problemText } from '@keycast/protocol'
import type { FastifyReply } from 'fastify'
import { sendProblem } from './problems.ts'

/** The caller repeats a call that did not reach every gateway after this time. */
const RETRY_AFTER_MS = 1_000

/**
 * @param what was done where the others cannot be told
 * @param telling them; absent where nothing would keep it for them
 */
export async function tellGateways<T extends object>(
  reply: FastifyReply,
  what: string,
  done: T,
  telling: Promise<Problem | undefined> | undefined,
) {
  // No other gateway would be told, and the caller must not believe that one was.
  if (!telling) return { ...done, reach: 'this gateway: call each one' }
  const failed = await telling
  if (!failed) return { ...done, reach: 'every gateway' }
  const message = `${what}: ${problemText(failed)}. Call again`
  return sendProblem(reply, { code: 'journal_unavailable', message, retryAfterMs: RETRY_AFTER_MS })
}
