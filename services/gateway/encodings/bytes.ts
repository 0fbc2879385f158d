// `keycast.v1.bytes`: a value is a binary message, a line of JSON and the body as it is, or a delta to it. It is a frame made
// once, unless the body lies in the frame that JSON sessions are sent: then what stands before it is a piece of its own, and
// the two leave in one write.
import type { Delta } from '@keycast/backbone'
import { BYTES_SUBPROTOCOL, deltaLine, type RequestId, valueLine } from '@keycast/protocol'
import { detached } from '@keycast/service'
import type { Value } from '../topics/values/value.ts'
import { binaryFrameStart, textFrame } from '../transport/frames.ts'
import type { PlainEncoding } from './encoding.ts'

/** `frame` and `delta` are whole frames; `start` stands before a body that lies elsewhere. */
interface Form {
  frame: Buffer | undefined
  start: Buffer | undefined
  delta: Buffer | undefined
}

export function createBytes(slot: number): PlainEncoding {
  function formOf(value: Value): Form {
    const made = value.forms[slot] as Form | undefined
    if (made) return made
    const form = { frame: undefined, start: undefined, delta: undefined }
    value.forms[slot] = form
    return form
  }

  const addValue: PlainEncoding['addValue'] = (value, pieces) => {
    const form = formOf(value)
    if (value.framedBy === undefined || value.framedBy === slot) {
      form.frame ??= valueFrame(value, slot)
      pieces.push(form.frame)
      return form.frame.length
    }
    form.start ??= detached(startOf(value))
    pieces.push(form.start, value.body)
    return form.start.length + value.body.length
  }

  return {
    subprotocol: BYTES_SUBPROTOCOL,
    slot,
    addValue,
    addAnswer(value, id, pieces) {
      if (id === undefined) return addValue(value, pieces)
      const start = startOf(value, id)
      pieces.push(start, value.body)
      return start.length + value.body.length
    },
    delta(value) {
      const form = formOf(value)
      form.delta ??= deltaFrame(value)
      return form.delta
    },
    control: text => textFrame(text).frame,
    mustWait: undefined,
    isBinary: true,
    head,
    body: value => value.body,
  }
}

/** @param id of the one request it answers */
function head({ key, version, order, contentType }: Value, id?: RequestId) {
  return valueLine({ id, key, version, order, contentType })
}

function startOf(value: Value, id?: RequestId) {
  return binaryFrameStart(head(value, id), value.body.length)
}

function valueFrame(value: Value, slot: number) {
  const start = startOf(value)
  const frame = detached(Buffer.concat([start, value.body]))
  // The frame holds the same bytes: reading them there frees the body as it was received.
  value.body = frame.subarray(start.length)
  value.framedBy = slot
  return frame
}

/** @param value has a delta */
function deltaFrame(value: Value) {
  const { key, version, order, contentType } = value
  const { from, bytes } = value.delta as Delta
  const start = binaryFrameStart(deltaLine({ key, from, version, order, contentType }), bytes.length)
  const frame = detached(Buffer.concat([start, bytes]))
  // The frame holds the same bytes: reading them there frees the delta as it was received.
  value.delta = { from, bytes: frame.subarray(start.length) }
  return frame
}
