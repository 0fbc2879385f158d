/** The size of a message. */
export function bytesOf(parts: Buffer[]) {
  let bytes = 0
  for (const part of parts) bytes += part.length
  return bytes
}
