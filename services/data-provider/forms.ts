// The three forms of a document. The head differs for each id; the body is the same for all ids at one revision.
import { createHash } from 'node:crypto'
import { authors, jsonMessage, MESSAGE_BYTES, proseOf, textMessage } from './messages.ts'

export interface Moment {
  revision: number
  /** Since 1970. */
  changedAtMs: number
  /** Between two messages. */
  stepMs: number
}

interface Form {
  contentType: string
  /** Of a document of so many bytes: leaves room for any head. */
  body: (moment: Moment, bytes: number) => Buffer
  /** Filled up to exactly so many bytes. */
  head: (id: string, moment: Moment, bytes: number) => Buffer
  tail: string
}

/** The longest head before it is filled up: id 255, revision 16, time 24, title 30, names 50, punctuation 110. */
const HEAD_BYTES_MAX = 500

const titles = ['Where is my parcel', 'Invoice booked twice', 'Spare part for the board', 'Notes of the weekly call']

export const conversation: Form = {
  contentType: 'application/json; charset=utf-8',
  // The first message stands after "[", not after a comma.
  body: (moment, bytes) => messagesOf(jsonMessage, moment, bytes).subarray(1),
  head(id, { revision, changedAtMs }, bytes) {
    const at = new Date(changedAtMs).toISOString()
    const names = JSON.stringify(authors)
    const start = `{"id":"${id}","revision":${revision},"changedAt":"${at}","title":"${titleOf(id)}","participants":${names},"about":"`
    return filled(start, '","messages":[', bytes)
  },
  tail: ']}',
}

export const text: Form = {
  contentType: 'text/plain; charset=utf-8',
  body: (moment, bytes) => messagesOf(textMessage, moment, bytes),
  head(id, { revision, changedAtMs }, bytes) {
    const at = new Date(changedAtMs).toISOString()
    return filled(
      `${titleOf(id)}\nid ${id}, revision ${revision}, changed ${at}\n${authors.join(', ')}\n`,
      '\n\n',
      bytes,
    )
  },
  tail: '',
}

/** Noise behind a head of plain text. Never valid UTF-8, because it ends in a byte that no text has. */
export const binary: Form = {
  contentType: 'application/octet-stream',
  body(_, bytes) {
    const noise = Buffer.allocUnsafe(bytes - HEAD_BYTES_MAX)
    let state = 0x2545f491
    for (let at = 0; at < noise.length - 1; at += 1) {
      // Xorshift, 32 bits (Marsaglia 2003): the same noise at every start.
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      noise[at] = state & 0xff
    }
    noise[noise.length - 1] = 0xff
    return noise
  },
  head(id, { revision, changedAtMs }, bytes) {
    return filled(`binary ${id} revision ${revision} ${new Date(changedAtMs).toISOString()}\n`, '\0', bytes)
  },
  tail: '',
}

/**
 * The newest messages, as many as fit. The newest is as old as the revision, so each revision adds one and drops one.
 */
function messagesOf(
  render: (number: number, at: string) => string,
  { revision, changedAtMs, stepMs }: Moment,
  bytes: number,
) {
  const count = Math.floor((bytes - HEAD_BYTES_MAX) / MESSAGE_BYTES)
  const rendered = []
  for (let place = 1; place <= count; place += 1) {
    rendered.push(render(revision + place, new Date(changedAtMs - (count - place) * stepMs).toISOString()))
  }
  return Buffer.from(rendered.join(''))
}

function filled(start: string, end: string, bytes: number) {
  return Buffer.from(start + proseOf(0, bytes - Buffer.byteLength(start) - Buffer.byteLength(end)) + end)
}

function titleOf(id: string) {
  return titles[createHash('sha256').update(id).digest()[0] % titles.length]
}
