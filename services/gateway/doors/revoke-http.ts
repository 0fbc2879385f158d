// POST /v1/revoke and POST /v1/close: an operator ends a user's sessions and tokens, or the sessions of an address.
import { isIP } from 'node:net'
import type { Problem } from '@keycast/protocol'
import type { World } from '@keycast/service'
import type { FastifyInstance } from 'fastify'
import { type Revocation, readRevocation } from '../access/revocations/revocations.ts'
import type { Guard } from './http/guard.ts'
import { sendProblem } from './http/problems.ts'
import { tellGateways } from './http/tell-gateways.ts'

/** A name of 512 characters, each of them escaped. */
const REVOCATION_BYTES_MAX = 8 * 1_024

interface Deps extends Pick<World, 'wallNow'> {
  guard: Guard
  revoke: (revocation: Revocation) => { outcome: 'added' | 'known' | 'full'; sessions: number }
  /** Tells the other gateways; absent where nothing would keep it for them. */
  shareRevocation?: (revocation: Revocation) => Promise<Problem | undefined>
  /** Ends this gateway's sessions of a client's address; returns how many those were. */
  endAddress: (address: string) => number
  /** Has the other gateways close the sessions of an address; absent as above. */
  shareClosing?: (address: string) => Promise<Problem | undefined>
}

export function addRevocations(calls: FastifyInstance, deps: Deps) {
  const { guard, revoke, shareRevocation, endAddress, shareClosing, wallNow } = deps
  calls.post('/v1/revoke', { bodyLimit: REVOCATION_BYTES_MAX, ...guard.recorded('revoke') }, async (request, reply) => {
    const read = readRevocation(request.body, wallNow())
    if ('problem' in read) return sendProblem(reply, { code: 'bad_request', message: read.problem })
    const { outcome, sessions } = revoke(read.revocation)
    if (outcome === 'full') {
      const message = 'nothing was revoked: the list is full. Change the key that signs the tokens instead'
      return sendProblem(reply, { code: 'revocations_full', message })
    }
    const ended = { ...read.revocation, sessionsEnded: sessions }
    return tellGateways(reply, alone('revoked', sessions), ended, shareRevocation?.(read.revocation))
  })

  calls.post('/v1/close', { bodyLimit: REVOCATION_BYTES_MAX, ...guard.recorded('revoke') }, async (request, reply) => {
    const { address } = (request.body ?? {}) as { address?: unknown }
    if (typeof address !== 'string' || isIP(address) === 0) {
      return sendProblem(reply, {
        code: 'bad_request',
        message: 'the body must be {"address":"192.0.2.7"}, or IPv6',
      })
    }
    const ended = { address, sessionsEnded: endAddress(address) }
    return tellGateways(reply, alone('closed', ended.sessionsEnded), ended, shareClosing?.(address))
  })
}

const alone = (done: string, sessions: number) => `${done} at this gateway alone, which ended ${sessions} sessions`
