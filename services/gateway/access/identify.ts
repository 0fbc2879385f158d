// For whom a request or a session is: reads the token that came with it, has it verified, and counts what became of it.
import { countOne } from '../counts.ts'
import { limitKeyOf, readClientAddress, readIsTrusted } from './client-address.ts'
import { readTokenSource } from './token-source.ts'

/**
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('./tokens/tokens.ts').Verified} Verified
 * @typedef {import('./tokens/tokens.ts').Refused} Refused
 * @typedef {ReturnType<typeof createIdentify>} Identify
 *
 * The other end of a connection. Attempts are counted by its `address`. `isNamed` is false for a trusted proxy or a program
 * on its host that names no client: counted as one client, it would shut out all the others behind it.
 * @typedef {{ address: string, isNamed: boolean }} Peer
 */

/**
 * @param {object} deps
 * @param {Pick<import('./tokens/tokens.ts').Tokens, 'verify'>} deps.tokens
 * @param {string | undefined} deps.cookie
 * @param {string} deps.trustedProxies
 * @param {Pick<import('../counts.ts').Counts, 'tokensAccepted' | 'tokensRefused'>} deps.counts
 */
export function createIdentify({ tokens, cookie, trustedProxies, counts }) {
  const readToken = readTokenSource({ cookie })
  const clientAddress = readClientAddress(trustedProxies)
  const isTrusted = readIsTrusted(trustedProxies)

  /**
   * @param {unknown} token
   * @param {string} address
   * @param {'header' | 'cookie' | 'message'} source
   * @returns {Promise<{ verified: Verified } | { refused: Refused }>} never rejects
   */
  async function verify(token, address, source) {
    const result = await tokens.verify(token, { address })
    if ('refused' in result) countOne(counts.tokensRefused, result.refused.reason)
    else countOne(counts.tokensAccepted, source)
    return result
  }

  return {
    verify,

    /** @param {IncomingMessage} request @returns {Peer} */
    peerOf(request) {
      const isNamed = request.headers['x-forwarded-for'] !== undefined || !isTrusted(request)
      return { address: limitKeyOf(clientAddress(request)), isNamed }
    },

    /**
     * @param {IncomingMessage} request
     * @param {string} address
     * @returns {ReturnType<typeof verify> | undefined} `undefined`: no token came
     */
    verifyRequest(request, address) {
      const presented = readToken(request.headers)
      return presented && verify(presented.token, address, presented.source)
    },
  }
}
