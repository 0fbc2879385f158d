// For whom a request or a session is: reads the token that came with it, has it verified, and counts what became of it.
import { countOne } from '../counts.js'
import { limitKeyOf, readClientAddress, readIsTrusted } from './client-address.js'
import { readTokenSource } from './token-source.js'

/**
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('./tokens/tokens.js').Verified} Verified
 * @typedef {import('./tokens/tokens.js').Refused} Refused
 * @typedef {ReturnType<typeof createIdentify>} Identify
 *
 * From where a connection comes. `address` is what attempts are counted by. `isNamed` false: a trusted proxy or a program
 * on its host, which names no client; to count it as one client would shut out all others behind it.
 * @typedef {{ address: string, isNamed: boolean }} Origin
 */

/**
 * @param {object} deps
 * @param {Pick<import('./tokens/tokens.js').Tokens, 'verify'>} deps.tokens
 * @param {string | undefined} deps.cookie
 * @param {string} deps.trustedProxies
 * @param {Pick<import('../counts.js').Counts, 'tokensAccepted' | 'tokensRefused'>} deps.counts
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

    /** @param {IncomingMessage} request @returns {Origin} */
    originOf(request) {
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
