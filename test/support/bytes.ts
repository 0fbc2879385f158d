// The binary messages of `keycast.v1.bytes`, as a client reads them: a line of JSON, then a content or a delta to it.
import { versionOf } from '@keycast/protocol'
import { applyDelta } from 'fossil-delta'

/** A binary message: its line, with the rest as `bytes`. */
export function readBinary(payload: Buffer) {
  const end = payload.indexOf('\n')
  return { ...JSON.parse(payload.toString('utf8', 0, end)), bytes: payload.subarray(end + 1) }
}

/**
 * The content that a message leads to.
 *
 * @param held the content its reader holds
 * @throws {Error} where that is not the content its version names, or a delta starts from something else
 */
export function contentOf(
  {
    type,
    key,
    from,
    version,
    contentType,
    bytes,
  }: { type: 'value' | 'delta'; key: string; from?: string; version: string; contentType: string; bytes: Buffer },
  held: Buffer | undefined,
) {
  if (type === 'delta' && (!held || versionOf(held, contentType) !== from))
    throw new Error(`a delta of ${key} from what is not held`)
  const content = type === 'delta' ? Buffer.from(applyDelta(held as Buffer, bytes)) : bytes
  if (versionOf(content, contentType) !== version)
    throw new Error(`a ${type} of ${key} that is not the version it names`)
  return content
}
