// Values as `keycast.v1.bytes` sends them: a binary message of a line and the body as it is. The body is never copied
// into a frame: what stands before it is a piece of its own, and the two leave in one write.
import { valueLine } from '@keycast/protocol'
import { binaryFrameStart } from './frames.js'

/**
 * What stands before the body of a value.
 *
 * @param {import('./value.js').Value} value
 * @param {import('@keycast/protocol').RequestId} [id] of the one request it answers
 */
export function bytesStart({ key, version, contentType, body }, id) {
  return binaryFrameStart(valueLine({ id, key, version, contentType }), body.length)
}
