// A namespace of rooms in keycast.yaml: the retention of each room's history, who may publish, and who sees the
// members.
import { z } from 'zod'
import { duration, size } from '../quantities.cjs'
import {
  type Authorize,
  authorizeOf,
  authorizeRooms,
  chosenBy,
  DURATION_MS_MAX,
  headers,
  quantity,
  urlOfAny,
} from './fields.ts'
import { notifyOf, notifyOfRooms, type RoomsNotify } from './notify-schema.ts'
import { JOURNAL_PART_BYTES_MAX } from './pushed-schema.ts'
import { strictMap } from './strict-map.ts'

export interface JournalNamespace {
  name: string
  source: 'journal'
  /** The retention of each room; each bound alone trims. */
  history: { messages: number; ageMs: number; bytes: number }
  /** Of one message's data. */
  bytesMax: number
  /** The allowed publishers: clients as well, or only backends by the internal listener. */
  publish: 'client' | 'server'
  /** The backend is asked before a client's message is taken. */
  ask?: AskBefore
  /** The members that clients are told of: all, their number, or none. */
  members: 'none' | 'counted' | 'named'
  /** Whether a name belongs to one user at a time. */
  names: 'unique' | 'any'
  /** The backend decides whom it lets into a room. */
  authorize?: Authorize
  /** A time-out for that question. */
  timeoutMs?: number
  /** What the backend is told. */
  notify?: RoomsNotify
}

/** `headers` are sent with each question. Secret: never log them. `otherwise`: what becomes of a message without an answer. */
export interface AskBefore {
  urlFor: (id: string) => string
  origin: string
  /** Of the URL, for logs. */
  pattern: string
  timeoutMs: number
  otherwise: 'refuse' | 'take'
  headers: Record<string, string>
}

const AGE_MS_MIN = 1_000
const AGE_MS_MAX = 366 * 24 * 3_600_000
const MESSAGES_MAX = 1_000_000
const HISTORY_BYTES_MIN = 1_024
const HISTORY_BYTES_MAX = 1_024 ** 3

const messagesError = `must be a whole number: 1 to ${MESSAGES_MAX}`

const choice = (...values: [string, ...string[]]) => z.enum(values, { error: `must be ${values.join(' or ')}` })

const history = strictMap(
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

const asking = strictMap(
  {
    ask: urlOfAny,
    timeout: quantity(duration({ minMs: 1, maxMs: DURATION_MS_MAX })).default(2_000),
    otherwise: choice('refuse', 'take').default('refuse'),
  },
  { error: 'must be a map with ask, timeout and otherwise' },
)

const publishers = z.enum(['client', 'server'], { error: 'must be client, server, or a map with ask' })

const publish = chosenBy(written => (typeof written === 'object' && written !== null ? asking : publishers))

const fields = strictMap({
  source: z.literal('journal'),
  history: history.prefault({}),
  maxBytes: quantity(size({ minBytes: 1, maxBytes: JOURNAL_PART_BYTES_MAX })).default(64 * 1_024),
  publish: publish.prefault('client'),
  headers: headers.default({}),
  members: choice('none', 'counted', 'named').default('none'),
  names: choice('unique', 'any').default('any'),
  authorize: authorizeRooms.optional(),
  notify: notifyOfRooms.optional(),
})

export const journalNamespace = fields.superRefine(({ publish, headers, members, notify }, context) => {
  const refuse = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
  if (typeof publish !== 'object' && Object.keys(headers).length > 0) {
    refuse(['headers'], 'need publish: { ask }: nothing else sends them')
  }
  if (notify?.members && members === 'none') {
    refuse(['notify', 'members'], 'needs members: counted or named in the namespace')
  }
  if (notify && !notify.messages && !notify.members) refuse(['notify', 'messages'], 'or members must be true')
})

export function journalNamespaceOf(
  name: string,
  { source, history, maxBytes, publish, headers, members, names, authorize, notify }: z.output<typeof journalNamespace>,
): JournalNamespace {
  return {
    name,
    source,
    history: { messages: history.messages, ageMs: history.age, bytes: history.bytes },
    bytesMax: maxBytes,
    publish: typeof publish === 'object' ? 'client' : publish,
    ...(typeof publish === 'object' && {
      ask: { ...publish.ask, timeoutMs: publish.timeout, otherwise: publish.otherwise, headers },
    }),
    members,
    names,
    ...(authorize && { authorize: authorizeOf(authorize), timeoutMs: authorize.timeout }),
    ...(notify && { notify: { ...notifyOf(notify), messages: notify.messages, members: notify.members } }),
  } as JournalNamespace
}
