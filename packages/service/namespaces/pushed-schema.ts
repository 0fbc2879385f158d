// A namespace in keycast.yaml whose values the backend hands over, and that is never fetched.
import { z } from 'zod'
import { duration, size } from '../quantities.cjs'
import { authorizeOf, authorizeRooms, DURATION_MS_MAX, ids, quantity } from './fields.ts'
import { ONE_SEGMENT } from './id-problem.ts'
import type { ValueNamespace } from './namespaces.ts'

export type PushedNamespace = ValueNamespace & { source: 'pushed' }

/** Half of what a journal's socket takes: a larger part would cut its gateway off. */
export const JOURNAL_PART_BYTES_MAX = 512 * 1_024

/** A gateway waits this long for the journal. */
const TIMEOUT_MS = 2_000

export const pushedFields = {
  source: z.literal('pushed'),
  maxAge: quantity(duration({ maxMs: DURATION_MS_MAX })).default(1_000),
  maxBytes: quantity(size({ minBytes: 1, maxBytes: JOURNAL_PART_BYTES_MAX })).default(JOURNAL_PART_BYTES_MAX),
  ids: ids.optional(),
  authorize: authorizeRooms.optional(),
}

export function pushedNamespaceOf(
  name: string,
  { source, maxAge, maxBytes, ids, authorize }: z.output<z.ZodObject<typeof pushedFields>>,
): PushedNamespace {
  return {
    name,
    source,
    maxAgeMs: maxAge,
    refreshMs: 0,
    timeoutMs: authorize?.timeout ?? TIMEOUT_MS,
    bytesMax: maxBytes,
    ids: ids ? { min: 1, max: ids.segments } : ONE_SEGMENT,
    ...(authorize && { authorize: authorizeOf(authorize) }),
  }
}
