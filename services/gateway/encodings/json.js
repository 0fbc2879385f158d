// Values as `keycast.v1.json` sends them: a text message with the body spliced into it.
import { VALUE_TAIL, valueHead } from '@keycast/protocol'
import { textFrame, textFrameStart } from '../transport/frames.js'

/**
 * A value ready to be written to any number of sessions. `frame` is what is fanned out; `rest`, its end from the body
 * on, follows the head of an answer that carries an id. They share their memory.
 *
 * @typedef {{ frame: Buffer, rest: Buffer }} Encoded
 */

/**
 * @param {import('../keys/value.js').Value} value
 * @returns {Encoded}
 */
export function encodeJson(value) {
  const { frame, bodyOffset } = textFrame(valueHead(value), literal(value), VALUE_TAIL)
  return { frame, rest: frame.subarray(bodyOffset) }
}

/**
 * What stands before {@link Encoded}'s `rest` in the answer to one request.
 *
 * @param {import('../keys/value.js').Value} value
 * @param {Encoded} encoded
 * @param {import('@keycast/protocol').RequestId} id
 */
export function answerStart({ key, version, contentType, format }, { rest }, id) {
  return textFrameStart(valueHead({ id, key, version, contentType, format }), rest.length)
}

/**
 * The body as a JSON value: as it came, or as a string's literal.
 *
 * @param {import('../keys/value.js').Value} value
 */
function literal({ format, body }) {
  switch (format) {
    case 'json':
      return body
    case 'text':
      return Buffer.from(JSON.stringify(body.toString()))
    case 'base64':
      return Buffer.from(`"${body.toString('base64')}"`)
  }
}
