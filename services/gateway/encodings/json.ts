// `keycast.v1.json`: text messages, with a value's body spliced into its message.
import { JSON_SUBPROTOCOL, VALUE_TAIL, valueHead } from '@keycast/protocol'
import type { Value } from '../topics/values/value.ts'
import { textFrame, textFrameStart } from '../transport/frames.ts'
import type { PlainEncoding } from './encoding.ts'

/**
 * `frame` is what every session is sent; `body`, its end from the value's body on, follows the head of an answer that
 * carries an id. They share their memory.
 */
interface Form {
  frame: Buffer
  body: Buffer
}

export function createJson(slot: number): PlainEncoding {
  /** @returns built when the first session needs it */
  function formOf(value: Value): Form {
    const built = value.forms[slot] as Form | undefined
    if (built) return built
    const { frame, bodyOffset } = textFrame(valueHead(value), literal(value), VALUE_TAIL)
    const form = { frame, body: frame.subarray(bodyOffset) }
    value.forms[slot] = form
    if (value.format === 'json') takeBody(value, form)
    return form
  }

  /** The frame holds the same bytes: reading them there frees the body as it was received, and any other frame of it. */
  function takeBody(value: Value, { body }: Form) {
    if (value.framedBy !== undefined) value.forms[value.framedBy] = undefined
    value.body = body.subarray(0, value.body.length)
    value.framedBy = slot
  }

  const addValue: PlainEncoding['addValue'] = (value, pieces) => {
    const { frame } = formOf(value)
    pieces.push(frame)
    return frame.length
  }

  const head: PlainEncoding['head'] = ({ key, version, order, contentType, format }, id) =>
    valueHead({ id, key, version, order, contentType, format })

  return {
    subprotocol: JSON_SUBPROTOCOL,
    slot,
    addValue,
    addAnswer(value, id, pieces) {
      if (id === undefined) return addValue(value, pieces)
      const { body } = formOf(value)
      const start = textFrameStart(head(value, id), body.length)
      pieces.push(start, body)
      return start.length + body.length
    },
    delta: undefined,
    control: text => textFrame(text).frame,
    mustWait: undefined,
    isBinary: false,
    head,
    body: value => formOf(value).body,
  }
}

/** The body as a JSON value: as it came, or as a string's literal. */
function literal({ format, body }: Value) {
  switch (format) {
    case 'json':
      return body
    case 'text':
      return Buffer.from(JSON.stringify(body.toString()))
    case 'base64':
      return Buffer.from(`"${body.toString('base64')}"`)
  }
}
