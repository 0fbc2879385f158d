// A gateway whose namespaces `doc` and `page` have a backend that decides, which the test plays, and clients with tokens.
import { createHash } from 'node:crypto'
import type { Settings } from '../../settings.ts'
import { authorizeKept, createTestGateway } from '../../test-support.ts'
import { readRule } from '../rule.ts'
import { authenticate, issuers, sign } from '../test-tokens.ts'

export const nowMs = 1_800_000_000_000
export const KEEP_MS = 10_000
export const authorize = authorizeKept(KEEP_MS)
const anonymous = readRule({ read: ['tick:*', 'doc:open', 'page:*'] }, { user: false, strict: true }).rule
const everyone = readRule({ read: ['doc:*'] }, { user: true, strict: true }).rule
export const viewerOf = (user: string) => createHash('sha256').update(user).digest('base64url')

export function createDecidingGateway(settings?: Partial<Settings>) {
  const started = createTestGateway({
    startAtMs: nowMs,
    namespaces: { doc: { authorize }, page: { authorize }, tick: {} },
    policy: { tokens: issuers, anonymous, everyone },
    settings,
  })
  const { backbone, connect, turn } = started
  async function clientWith(token: string) {
    const client = await connect()
    expect(await authenticate(client, token, turn)).toEqual([])
    return { ...client, token }
  }
  return {
    ...started,
    token: (sub: string, ttlSeconds = 300, claims?: Record<string, unknown>) =>
      sign({ sub, nowMs: nowMs + started.now() - 1_000_000, ttlSeconds, claims }),
    /** A client with a token of its own. */
    client: async (sub: string, ttlSeconds = 300) =>
      clientWith(await sign({ sub, nowMs: nowMs + started.now() - 1_000_000, ttlSeconds })),
    clientWith,
    /** The fetcher reports the backend's decision on the question that waits longest. */
    async decide(decision: any) {
      backbone.questions.shift()?.resolve(decision && { message: '', ...decision })
      await turn()
    },
  }
}

export const admitted = { verdict: 'admitted', ageMs: 0 }
export const refused = { verdict: 'refused', ageMs: 0 }
export const failed = { verdict: 'failed', message: 'the backend answered 500', retryAfterMs: 1_000 }
export const KEY = 'doc:1'
