// Every GET for a key begins here: it finds the user, checks that the rights cover the key, and asks whether the
// backend lets the user read it. Browsers are told to show the answer as it is, and to run nothing of it.
import { sendProblem } from './problems.js'

/**
 * @typedef {import('../access/rights.js').Rights} Rights
 * @typedef {import('../keys/problem.js').Problem} Problem
 * @typedef {ReturnType<typeof createAdmit>} Admit
 */

/** The content comes from a backend or a user: a page among it must not act under this origin's name. */
export const securityHeaders = Object.freeze({
  'content-security-policy': "default-src 'none'; sandbox",
  'x-content-type-options': 'nosniff',
  // Pages of other origins cannot read it; this keeps them from having it loaded as an image or script, too.
  'cross-origin-resource-policy': 'same-origin',
})

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('./authenticate.js').createAuthenticate>} deps.authenticate
 * @param {Pick<import('../access/backend/decisions.js').Decisions, 'applies' | 'ask'>} deps.decisions
 */
export function createAdmit({ authenticate, decisions }) {
  /**
   * @param {import('fastify').FastifyRequest} request for the key that its `*` names
   * @param {import('fastify').FastifyReply} reply
   * @param {(rights: Rights, verb: 'read', key: string) => Problem | undefined} check of access.js
   * @returns {Promise<{ key: string, hasToken: boolean, viewer: import('../access/backend/viewers.js').Viewer |
   *   undefined, revoked: () => import('./problems.js').HttpProblem | undefined } | undefined>} `undefined` if it was
   *   refused and answered already
   */
  return async function admit(request, reply, check) {
    const { '*': key } = /** @type {{ '*': string }} */ (request.params)
    const caller = await authenticate(request.raw)
    // A cache on the way must not give one user's answer to another user.
    if (caller.hasToken) reply.header('vary', 'Authorization, Cookie')
    if ('problem' in caller) return void sendProblem(reply, caller.problem, caller.status)
    const { rights, ...rest } = caller
    const problem =
      check(rights, 'read', key) ?? (decisions.applies(key) ? await decisions.ask(caller, key) : undefined)
    return problem ? void sendProblem(reply, problem) : { key, ...rest }
  }
}
