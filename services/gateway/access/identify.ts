// For whom a request or a session is: reads the token that came with it, has it verified, and counts what became of it.
import type { IncomingMessage } from 'node:http'
import { type Counts, countOne } from '../counts.ts'
import { readPeer } from './client-address.ts'
import { readTokenSource } from './token-source.ts'
import type { Checked } from './tokens/tokens.ts'

interface Deps {
  tokens: { verify(token: unknown, from: { address: string }): Promise<Checked> }
  /** Its `cookie` may change. */
  policy: { readonly cookie: string | undefined }
  trustedProxies: string
  counts: Pick<Counts, 'tokensAccepted' | 'tokensRefused'>
}

export function createIdentify({ tokens, policy, trustedProxies, counts }: Deps) {
  const readToken = readTokenSource(policy)

  /** @returns never rejects */
  async function verify(token: unknown, address: string, source: 'header' | 'cookie' | 'message'): Promise<Checked> {
    const result = await tokens.verify(token, { address })
    if ('refused' in result) countOne(counts.tokensRefused, result.refused.reason)
    else countOne(counts.tokensAccepted, source)
    return result
  }

  return {
    verify,

    peerOf: readPeer(trustedProxies),

    /** @returns `undefined`: no token came */
    verifyRequest(request: IncomingMessage, address: string): ReturnType<typeof verify> | undefined {
      const presented = readToken(request.headers)
      return presented && verify(presented.token, address, presented.source)
    },
  }
}
