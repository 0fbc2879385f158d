// The content of the simulated backend: a pure function of kind, id, length and time. Between two revisions only the
// head and the ends of the window of messages differ: a few hundred bytes, whatever the length.
import { createHash } from 'node:crypto'
import { binary, conversation, type Moment, text } from './forms.ts'

/** Room for the longest head and a few messages. */
export const DOCUMENT_BYTES_MIN = 1_000

/** Above the default maxBytes of a namespace, so that too_large can be provoked. */
export const DOCUMENT_BYTES_MAX = 16 * 1_024 ** 2

/** Bodies kept, one per kind and length (?bytes=): 128 MiB at most. Others are made again for each request. */
const BODIES_MAX = 8

/** The moment of documents that never change. */
const STILL = { revision: 1, changedAtMs: Date.UTC(2026, 0, 1), stepMs: 60_000 }

const forms = { conversations: conversation, text, binary }

export type Kind = keyof typeof forms

interface Document {
  contentType: string
  /** Strong, made from the content (RFC 9110 section 8.8.3). */
  etag: string
  /** Since 1970. */
  changedAtMs: number
  content: () => Buffer
}

/**
 * @param options how often documents change; 0: never. The revision counts periods since 1970, so that it goes on
 *   rising after a restart, unless that sets a longer period
 */
export function createDocuments({ changeMs }: { changeMs: number }) {
  const bodies = new Map<string, { revision: number; body: Buffer; digest: Buffer }>()

  const momentOf = (nowMs: number): Moment => {
    if (changeMs === 0) return STILL
    const revision = Math.floor(nowMs / changeMs)
    return { revision, changedAtMs: revision * changeMs, stepMs: changeMs }
  }

  /** Rendered and hashed once per revision, so that each further answer costs only its own head and one copy. */
  const bodyOf = (kind: Kind, moment: Moment, bytes: number) => {
    const name = `${kind} ${bytes}`
    const held = bodies.get(name)
    if (held?.revision === moment.revision) return held
    bodies.delete(name)
    if (bodies.size >= BODIES_MAX) bodies.delete(bodies.keys().next().value as string)
    const body = forms[kind].body(moment, bytes)
    const made = { revision: moment.revision, body, digest: createHash('sha256').update(body).digest() }
    bodies.set(name, made)
    return made
  }

  return {
    /**
     * @param id unreserved characters and slashes, 255 at most
     * @param bytes the content's exact length
     * @param nowMs since 1970
     */
    read(kind: Kind, id: string, bytes: number, nowMs: number): Document {
      const form = forms[kind]
      const moment = momentOf(nowMs)
      const { body, digest } = bodyOf(kind, moment, bytes)
      const head = form.head(id, moment, bytes - body.length - form.tail.length)
      const hash = createHash('sha256').update(head).update(digest).digest()
      return {
        contentType: form.contentType,
        etag: `"${hash.toString('base64url', 0, 16)}"`,
        changedAtMs: moment.changedAtMs,
        content: () => Buffer.concat([head, body, Buffer.from(form.tail)]),
      }
    },
  }
}
