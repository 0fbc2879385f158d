// Reads one WebSocket message: JSON text, or in binary one line of JSON and the bytes behind it.

const LINE_FEED = 10
export const utf8 = new TextDecoder()

/**
 * @param {string | ArrayBuffer} data
 * @returns {{ message: any, bytes?: Uint8Array }}
 * @throws {SyntaxError} if it is neither
 */
export function readFrame(data) {
  if (typeof data === 'string') return { message: JSON.parse(data) }
  const frame = new Uint8Array(data)
  const end = frame.indexOf(LINE_FEED)
  return { message: JSON.parse(utf8.decode(frame.subarray(0, end))), bytes: frame.subarray(end + 1) }
}
