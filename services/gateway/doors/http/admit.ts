// Every GET for a key begins here: it finds the user, checks that the rights cover the key, and asks whether the
// backend lets the user read it. Browsers are told to show the answer as it is, and to run nothing of it.
import { finished } from 'node:stream'
import { isProblem, type Problem } from '@keycast/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Act, Admitted, Asker } from '../../gate/gate.ts'
import type { Authenticate } from './authenticate.ts'
import { keyOf } from './key-in-path.ts'
import type { PendingLimit } from './pending-limit.ts'
import { sendProblem } from './problems.ts'
import { addVary } from './vary.ts'

export type Admit = ReturnType<typeof createAdmit>

/** The content comes from a backend or a user: a page among it must not act under this origin's name. */
export const securityHeaders = Object.freeze({
  'content-security-policy': "default-src 'none'; sandbox",
  'x-content-type-options': 'nosniff',
  // Pages of other origins cannot read it; this keeps them from having it loaded as an image or script, too.
  'cross-origin-resource-policy': 'same-origin',
})

interface Deps {
  authenticate: Authenticate
  gate: { enter(asker: Asker, act: Act, key: string): Admitted | Problem | Promise<Admitted | Problem> }
  pending: PendingLimit
}

export function createAdmit({ authenticate, gate, pending }: Deps) {
  /**
   * @param request for the key that its `*` names
   * @returns `undefined` if it was refused and answered already
   */
  return async function admit(
    request: FastifyRequest,
    reply: FastifyReply,
    act: Act,
  ): Promise<(Admitted & { hasToken: boolean }) | undefined> {
    const key = keyOf(request)
    const caller = await authenticate(request.raw)
    // A cache on the way must not give one user's answer to another user.
    if (caller.hasToken) addVary(reply, 'Authorization, Cookie')
    if ('problem' in caller) return void sendProblem(reply, caller.problem)
    finished(reply.raw, caller.leave)
    const { result: entered, problem } = await pending.wait(caller.payer, () => gate.enter(caller, act, key))
    if (problem) return void sendProblem(reply, problem)
    return isProblem(entered) ? void sendProblem(reply, entered) : { ...entered, hasToken: caller.hasToken }
  }
}
