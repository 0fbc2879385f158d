// Values as `keycast.v1.bytes` sends them: a binary message of a line and the body as it is, or a delta to it. The body is
// never copied into a frame: what stands before it is a piece of its own, and the two leave in one write.
import { deltaLine, valueLine } from '@keycast/protocol'
import { binaryFrameStart } from '../transport/frames.js'

/**
 * What stands before the body of a value.
 *
 * @param {import('../keys/value.js').Value} value
 * @param {import('@keycast/protocol').RequestId} [id] of the one request it answers
 */
export function bytesStart({ key, version, contentType, body }, id) {
  return binaryFrameStart(valueLine({ id, key, version, contentType }), body.length)
}

/**
 * The whole message that makes a value out of the version before it.
 *
 * @param {Pick<import('../keys/value.js').Value, 'key' | 'version' | 'contentType'>} value
 * @param {import('@keycast/backbone').Delta} delta
 */
export function deltaFrame({ key, version, contentType }, { from, bytes }) {
  return Buffer.concat([binaryFrameStart(deltaLine({ key, from, version, contentType }), bytes.length), bytes])
}
