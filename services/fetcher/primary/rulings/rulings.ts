// Asks backends about messages before they are published. The answer to a message that has an id is kept for a while: a
// client that did not hear what became of it sends it again, by any gateway, and must not be told otherwise.
import { createHash } from 'node:crypto'
import type { AskedMessage, Ruling } from '@keycast/backbone'
import { idOf, namespaceOf } from '@keycast/protocol'
import { type AskBefore, createRecent, type JournalNamespaces, type Payer, roomProblem } from '@keycast/service'
import type { FailureLog } from '../failure-log.ts'
import type { Kind, Questions, Reply } from '../questions/questions.ts'
import { readRuling } from './read-ruling.ts'

/** A gateway that waits for a ruling. */
interface Asker {
  link: string
  id: string
}

/** Without a ruling the backend is being asked. */
interface Kept {
  ruling: Ruling | undefined
  at: number
  bytes: number
  waiting: Asker[]
}

/** As long as a journal knows an id at least. */
export const KEPT_MS = 300_000

/** At some 300 bytes each they take 15 MB. */
const KEPT_MAX = 50_000

/** Of what backends put in the place of messages. */
const KEPT_BYTES_MAX = 16 * 2 ** 20

/** Of messages that wait to be asked about, with {@link QUESTION_BYTES} for each. */
const QUEUED_BYTES_MAX = 32 * 2 ** 20

/** The cost of a question beside its data. */
const QUESTION_BYTES = 1_024

/** Around the data in a response. */
const ENVELOPE_BYTES = 4_096

/** A gateway asks again after this time if the two have different configurations. */
const MISCONFIGURED_RETRY_MS = 5_000

/** The requests that these questions make. */
export const rulingQuestions = (namespaces: JournalNamespaces): Kind => ({
  namespaces,
  originOf: name => namespaces.get(name)?.ask?.origin,
  refuses: status => status === 403 || status === 422,
  what: 'whether this may be published',
  queuedMax: QUEUED_BYTES_MAX,
})

interface Deps {
  namespaces: JournalNamespaces
  questions: Pick<Questions, 'add'>
  tellRuling: (link: string, id: string, ruling: Ruling) => void
  /** Told of each 403 without a reason where no message was ever taken. */
  logNothing: FailureLog['failed']
  metrics: {
    questioned: (met: 'memory' | 'coalesced' | 'asked') => void
    ruled: (origin: string, ruling: 'taken' | 'changed' | 'refused' | 'none') => void
  }
  now: () => number
}

export function createRulings({ namespaces, questions, tellRuling, logNothing, metrics, now }: Deps) {
  /** The oldest first. */
  const kept = createRecent<string, Kept>()
  let keptBytes = 0
  /** Those by which a message was taken: their URL is right, and lets Keycast in. */
  const taking = new WeakSet<AskBefore>()

  /** @param message as a gateway sent it */
  function onCommand(link: string, id: string, message: AskedMessage, payer?: Payer) {
    const settings = roomProblem(message.key) ? undefined : namespaces.get(namespaceOf(message.key))?.ask
    if (!settings) return tellRuling(link, id, misconfigured)
    forgetOld()
    const name = message.messageId === undefined ? undefined : nameOf(message)
    const known = name === undefined ? undefined : kept.get(name)
    if (known?.ruling) {
      metrics.questioned('memory')
      return tellRuling(link, id, known.ruling)
    }
    if (known) {
      metrics.questioned('coalesced')
      return void known.waiting.push({ link, id })
    }
    metrics.questioned('asked')
    const entry: Kept = { ruling: undefined, at: now(), bytes: 0, waiting: [{ link, id }] }
    if (name !== undefined) kept.set(name, entry)
    ask(settings, message, payer, ruling => conclude(name, entry, settings, ruling))
  }

  function ask(settings: AskBefore, message: AskedMessage, payer: Payer | undefined, done: (ruling: Ruling) => void) {
    const { key, data } = message
    const namespace = namespaceOf(key)
    const bytesMax = namespaces.get(namespace)?.bytesMax ?? 0
    questions.add({
      key,
      namespace,
      payer,
      url: settings.urlFor(idOf(key)),
      headers: settings.headers,
      method: 'POST',
      body: bodyOf(message),
      bytesMax: bytesMax + ENVELOPE_BYTES,
      timeoutMs: settings.timeoutMs,
      weight: data.length + QUESTION_BYTES,
      done(reply) {
        const ruling = readRuling(reply, bytesMax)
        noteAnswer(namespace, settings, reply, ruling)
        done(ruling)
      },
    })
  }

  /** A backend that lets no request of Keycast's in refuses every message, which nobody else would hear of. */
  function noteAnswer(name: string, settings: AskBefore, { status, message }: Reply, ruling: Ruling) {
    if (ruling.ruling === 'take') taking.add(settings)
    else if (status === 403 && !('reason' in ruling) && !taking.has(settings)) {
      logNothing({ name, origin: settings.pattern }, { code: 'backend_refused', status, message })
    }
  }

  function conclude(name: string | undefined, entry: Kept, { origin, otherwise }: AskBefore, ruling: Ruling) {
    const data = ruling.ruling === 'take' ? ruling.data : undefined
    metrics.ruled(origin, data ? 'changed' : labels[ruling.ruling])
    // A message that is refused without an answer is asked about anew. One that is taken is kept by now.
    const isFinal = ruling.ruling === 'none' ? otherwise === 'take' : ruling.ruling !== 'crowded'
    if (name !== undefined && kept.get(name) === entry) {
      if (isFinal) keep(entry, ruling, data?.length ?? 0)
      else kept.delete(name)
    }
    for (const { link, id } of entry.waiting) tellRuling(link, id, ruling)
    entry.waiting = []
  }

  function keep(entry: Kept, ruling: Ruling, bytes: number) {
    entry.ruling = ruling
    entry.bytes = bytes
    keptBytes += bytes
    forgetOld()
  }

  /** One that is being asked about is answered all the same. */
  function forgetOld() {
    for (let oldest = kept.oldest(); oldest; oldest = kept.oldest()) {
      const isOld = now() - oldest.value.at > KEPT_MS
      if (!isOld && kept.size <= KEPT_MAX && keptBytes <= KEPT_BYTES_MAX) return
      keptBytes -= oldest.value.bytes
      kept.delete(oldest.key)
    }
  }

  return { onCommand, kept: () => ({ count: kept.size, bytes: keptBytes }) }
}

const labels = { take: 'taken', refuse: 'refused', none: 'none', crowded: 'none' } as const

const misconfigured: Ruling = {
  ruling: 'none',
  message: 'the fetcher has another configuration than the gateway: it asks no backend about this message',
  retryAfterMs: MISCONFIGURED_RETRY_MS,
}

/** The data belongs to it: under the id of another message something else is asked. */
const nameOf = ({ key, from, messageId, data }: AskedMessage) =>
  createHash('sha256')
    .update(`${JSON.stringify([key, from, messageId])} `)
    .update(data)
    .digest('base64url')

/** As of POST /v1/publish. The data is passed on as it was written. */
function bodyOf({ key, from, messageId, data }: AskedMessage): Buffer {
  const head = JSON.stringify({ key, messageId, from: from === '' ? undefined : from })
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"data":`), data, Buffer.from('}')])
}
