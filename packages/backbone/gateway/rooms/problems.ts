// What callers are told where a journal did not do what they asked, or could not be asked.
import type { Problem } from '@keycast/protocol'
import type { FailedAnswer } from '../../wire/rooms-codec.ts'

/** A client is told to wait this long while the journal is away. */
const RETRY_MS = 1_000

export const refusal = (code: 'journal_unavailable' | 'publish_unknown' | 'rate_limited'): Problem => ({
  code,
  retryAfterMs: RETRY_MS,
})

export const unavailable = () => refusal('journal_unavailable')

/** As the journal says it. */
export const problemOf = ({ type, key, ...problem }: FailedAnswer): Problem => problem
