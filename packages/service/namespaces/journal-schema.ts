// A namespace of rooms in keycast.yaml: the retention of each room's history, who may publish, and who sees the
// members.
import { z } from 'zod'
import { duration, size } from '../quantities.cjs'
import { authorizeRooms, quantity } from './fields.ts'
import type { Authorize } from './namespaces.ts'

export interface JournalNamespace {
  name: string
  source: 'journal'
  /** The retention of each room; each bound alone trims. */
  history: { messages: number; ageMs: number; bytes: number }
  /** Of one message's data. */
  bytesMax: number
  /** The allowed publishers: clients as well, or only backends by the internal listener. */
  publish: 'client' | 'server'
  /** The members that clients are told of: all, their number, or none. */
  members: 'none' | 'counted' | 'named'
  /** Whether a name belongs to one user at a time. */
  names: 'unique' | 'any'
  /** The backend decides whom it lets into a room. */
  authorize?: Authorize
  /** A time-out for that question. */
  timeoutMs?: number
}

const AGE_MS_MIN = 1_000
const AGE_MS_MAX = 366 * 24 * 3_600_000
const MESSAGES_MAX = 1_000_000
const HISTORY_BYTES_MIN = 1_024
const HISTORY_BYTES_MAX = 1_024 ** 3

/** Half of what a journal's socket takes: a larger message would cut its gateway off. */
const MESSAGE_BYTES_MAX = 512 * 1_024

const messagesError = `must be a whole number: 1 to ${MESSAGES_MAX}`

const choice = (...values: [string, ...string[]]) => z.enum(values, { error: `must be ${values.join(' or ')}` })

const history = z.strictObject(
  {
    messages: z
      .int({ error: messagesError })
      .min(1, { error: messagesError })
      .max(MESSAGES_MAX, { error: messagesError })
      .default(1_000),
    age: quantity(duration({ minMs: AGE_MS_MIN, maxMs: AGE_MS_MAX })).default(7 * 24 * 3_600_000),
    bytes: quantity(size({ minBytes: HISTORY_BYTES_MIN, maxBytes: HISTORY_BYTES_MAX })).default(16 * 1_024 ** 2),
  },
  { error: 'must be a map with messages, age and bytes' },
)

export const journalNamespace = z.strictObject({
  source: z.literal('journal'),
  history: history.prefault({}),
  maxBytes: quantity(size({ minBytes: 1, maxBytes: MESSAGE_BYTES_MAX })).default(64 * 1_024),
  publish: choice('client', 'server').default('client'),
  members: choice('none', 'counted', 'named').default('none'),
  names: choice('unique', 'any').default('any'),
  authorize: authorizeRooms.optional(),
})

export function journalNamespaceOf(
  name: string,
  { source, history, maxBytes, publish, members, names, authorize }: z.output<typeof journalNamespace>,
): JournalNamespace {
  return {
    name,
    source,
    history: { messages: history.messages, ageMs: history.age, bytes: history.bytes },
    bytesMax: maxBytes,
    publish,
    members,
    names,
    ...(authorize && {
      authorize: {
        ...authorize.url,
        method: authorize.method,
        keepMs: authorize.keep,
        keepRefusedMs: authorize.keepRefused,
      },
      timeoutMs: authorize.timeout,
    }),
  } as JournalNamespace
}
