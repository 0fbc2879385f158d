// What a backend's response says of a message.
import type { Ruling } from '@keycast/backbone'
import { DATA_DEPTH_MAX, rawMember } from '@keycast/protocol'
import { detached, jsonProblem, withoutBom } from '@keycast/service'
import { admits, type Reply } from '../questions/questions.ts'

/** It goes to the client as it is. */
const reasonGrammar = /^[\w.-]{1,64}$/

/** @param bytesMax of the data that takes the message's place */
export function readRuling({ status, message, retryAfterMs, isCrowded, body }: Reply, bytesMax: number): Ruling {
  if (isCrowded) return { ruling: 'crowded', message, retryAfterMs }
  if (status === 403 || status === 422) return { ruling: 'refuse', ...reasonIn(body) }
  if (status === undefined || !admits(status)) return { ruling: 'none', message, retryAfterMs }
  const read = readTaken(body, bytesMax)
  return typeof read === 'string' ? { ruling: 'none', message: `${message}: ${read}` } : read
}

/** @returns a text, if it says nothing of use: a page that some proxy answers with must let no message pass */
function readTaken(body: Buffer | undefined, bytesMax: number): Ruling | string {
  if (!body) return 'its body broke off, or is too long'
  if (body.length === 0) return { ruling: 'take' }
  const text = objectIn(body)
  if (text === undefined) return 'its body is neither empty nor a JSON object'
  const data = rawMember(text, 'data')
  if (!data) return { ruling: 'take' }
  if (data.depth > DATA_DEPTH_MAX) return `its data is nested deeper than ${DATA_DEPTH_MAX}`
  const bytes = detached(Buffer.from(data.text))
  return bytes.length > bytesMax ? `its data is over ${bytesMax} bytes` : { ruling: 'take', data: bytes }
}

function reasonIn(body: Buffer | undefined) {
  const text = body && objectIn(body)
  const written = text === undefined ? undefined : rawMember(text, 'reason')?.text
  const reason = written?.startsWith('"') ? JSON.parse(written) : ''
  return reasonGrammar.test(reason) ? { reason } : {}
}

/** Not parsed: of brackets alone a body as long as a message may be takes a tenth of a second. @returns its text */
function objectIn(body: Buffer): string | undefined {
  const json = withoutBom(body)
  const text = jsonProblem(json) ? '' : json.toString().trim()
  return text.startsWith('{') ? text : undefined
}
