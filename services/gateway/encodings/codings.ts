// The content codings of values over HTTP (RFC 9110 section 8.4.1): each version's body compressed once per coding, for
// all requests, in the same queue as what WebSockets are sent.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { detached } from '@keycast/service'
import type { Value } from '../topics/values/value.ts'
import type { Compression } from './compression-queue.ts'
import { DEFLATE_BYTES_MIN } from './deflate.ts'

const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

/** Of each coding, by its name in HTTP. */
const makers = Object.freeze({
  // Node's own quality, 11, takes 100 times as long for a third less.
  br: (body: Buffer) => brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: (body: Buffer) => zip(body),
})

export type Coding = keyof typeof makers

/** The one that is smaller first. */
export const codings = Object.keys(makers) as Coding[]

/** Of `value.forms`, behind those of all sessions: few values are asked for over HTTP. */
const SLOTS = Object.freeze({ br: 5, gzip: 6 })

export type Codings = ReturnType<typeof createCodings>

/** Whether a client may be sent the value in a coding. What is no text is mostly compressed already. */
export const isCodable = ({ body, format }: Pick<Value, 'body' | 'format'>) =>
  format !== 'base64' && body.length >= DEFLATE_BYTES_MIN

export function createCodings({ compress }: Pick<Compression, 'compress'>) {
  /** @returns `undefined` where the body is to be sent as it is: it gains nothing, is overtaken, or too much is queued */
  return function coded(value: Value, coding: Coding): Promise<Buffer | undefined> {
    const { forms } = value
    const slot = SLOTS[coding]
    const make = async (body: Buffer) => detached(await makers[coding](body))
    forms[slot] ??= new Promise(resolve => compress({ value, slot, source: value.body, make }, resolve))
    return forms[slot] as Promise<Buffer | undefined>
  }
}
