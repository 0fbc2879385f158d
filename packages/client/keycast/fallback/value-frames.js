// A value as `keycast.v1.bytes` has it, made of one in `keycast.v1.json`: the client above reads no other.

const encoder = new TextEncoder()

/** The last member of a value's text. No string before it holds this: its quotes would be escaped. */
const contentGrammar = /,"(data|text|base64)":/

/** @param {string} text a message @returns {string | ArrayBuffer} the same, if it is no value */
export function frameOf(text) {
  const found = text.startsWith('{"type":"value",') && contentGrammar.exec(text)
  if (!found) return text
  const { contentType = 'application/json', ...head } = JSON.parse(`${text.slice(0, found.index)}}`)
  const content = text.slice(found.index + found[0].length, -1)
  return joined({ ...head, contentType }, bytesOf(found[1], content))
}

/** @param {object} head @param {Uint8Array} bytes @returns {ArrayBuffer} */
export function joined(head, bytes) {
  const line = encoder.encode(`${JSON.stringify(head)}\n`)
  const frame = new Uint8Array(line.length + bytes.length)
  frame.set(line)
  frame.set(bytes, line.length)
  return frame.buffer
}

/** @param {string} form @param {string} content a JSON text, which is kept digit by digit */
function bytesOf(form, content) {
  if (form === 'data') return encoder.encode(content)
  const text = JSON.parse(content)
  return form === 'text' ? encoder.encode(text) : Uint8Array.from(atob(text), character => character.charCodeAt(0))
}
