// POST /v1/ticket: gives a ticket for the token that the request shows.
import type { FastifyInstance } from 'fastify'
import type { Admission } from '../../sessions/admission.ts'
import type { Authenticate } from '../http/authenticate.ts'
import { type HttpProblem, sendProblem } from '../http/problems.ts'
import { TICKET_MS, type Tickets } from './tickets.ts'

export interface TicketDeps {
  readonly authenticate: Authenticate
  readonly tickets: Tickets
  readonly admission: Pick<Admission, 'refused' | 'refusalOfPage'>
}

const NO_TOKEN: HttpProblem = {
  code: 'unauthenticated',
  message:
    'a ticket stands for a token: send one as Authorization: Bearer; without one, open the stream without a ticket',
}

/** @param app that takes any body */
export function addTicket(app: FastifyInstance, { authenticate, tickets, admission }: TicketDeps) {
  app.post('/v1/ticket', async (request, reply) => {
    // A page of another origin cannot read the ticket, but with its user's cookie it would have that user's others dropped.
    // This gateway's own page sends an origin with a POST, and none with the stream that follows.
    const isOwnPage = request.headers['sec-fetch-site'] === 'same-origin'
    const refusal = isOwnPage ? undefined : admission.refusalOfPage(request.headers)
    if (refusal) {
      admission.refused(refusal)
      return sendProblem(reply, refusal)
    }
    const caller = await authenticate(request.raw)
    if ('problem' in caller) return sendProblem(reply, caller.problem)
    caller.leave()
    const problem = caller.revoked()
    if (problem) return sendProblem(reply, problem)
    if (!caller.verified) return sendProblem(reply, NO_TOKEN)
    reply.header('cache-control', 'no-store')
    return reply.send({ ticket: tickets.give(caller.verified), expiresInMs: TICKET_MS })
  })
}
