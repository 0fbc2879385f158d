// Every GET for a key begins here: it finds the user, checks that the rights cover the key, and asks whether the
// backend lets the user read it. Browsers are told to show the answer as it is, and to run nothing of it.
import { isRefusal } from '../gate/gate.ts'
import { sendProblem } from './problems.ts'

/** @typedef {ReturnType<typeof createAdmit>} Admit */

/** The content comes from a backend or a user: a page among it must not act under this origin's name. */
export const securityHeaders = Object.freeze({
  'content-security-policy': "default-src 'none'; sandbox",
  'x-content-type-options': 'nosniff',
  // Pages of other origins cannot read it; this keeps them from having it loaded as an image or script, too.
  'cross-origin-resource-policy': 'same-origin',
})

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('./authenticate.ts').createAuthenticate>} deps.authenticate
 * @param {Pick<import('../gate/gate.ts').Gate, 'enter'>} deps.gate
 * @param {import('./pending-limit.ts').PendingLimit} deps.pending
 */
export function createAdmit({ authenticate, gate, pending }) {
  /**
   * @param {import('fastify').FastifyRequest} request for the key that its `*` names
   * @param {import('fastify').FastifyReply} reply
   * @param {import('../gate/gate.ts').Act} act
   * @returns {Promise<import('../gate/gate.ts').Admitted & { hasToken: boolean } | undefined>} `undefined` if it was
   *   refused and answered already
   */
  return async function admit(request, reply, act) {
    const { '*': key } = /** @type {{ '*': string }} */ (request.params)
    const caller = await authenticate(request.raw)
    // A cache on the way must not give one user's answer to another user.
    if (caller.hasToken) reply.header('vary', 'Authorization, Cookie')
    if ('problem' in caller) return void sendProblem(reply, caller.problem, caller.status)
    const { result: entered, problem } = await pending.wait(() => gate.enter(caller, act, key))
    if (problem) return void sendProblem(reply, problem)
    return isRefusal(entered) ? void sendProblem(reply, entered) : { ...entered, hasToken: caller.hasToken }
  }
}
