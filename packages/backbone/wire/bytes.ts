/** The size of a message. @param {Buffer[]} parts */
export function bytesOf(parts) {
  let bytes = 0
  for (const part of parts) bytes += part.length
  return bytes
}
