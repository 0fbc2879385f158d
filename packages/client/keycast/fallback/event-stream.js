// The second way: what the gateway says comes in one response that does not end (server-sent events), what the client
// says goes in requests beside it, one after the other, so that they keep their order.
import { addressOf, problemOf } from './requests.js'
import { frameOf } from './value-frames.js'

/** Messages that wait go together up to so many characters; a longer one goes alone. */
const BATCH_CHARACTERS_MAX = 16_384

/** In UTF-8, at most. */
const BYTES_PER_CHARACTER = 3

/** A value has 64 MiB at most, and a third more in base64. An event that does not end would take all memory. */
const EVENT_CHARACTERS_MAX = 2 ** 27

/** A proxy that limits requests is asked again after this time. */
const AGAIN_MS = 1_000

/** After a close the rest is said within this time, as a WebSocket says what it has buffered; or not at all. */
const CLOSING_MS = 5_000

/** A request that so many comments, one each 25 s, have overtaken has died on the way: all that comes after it would wait. */
const UNANSWERED_MAX = 2

const NAME = 'keycast-stream'

/** @param {import('./fallback.js').Surroundings} surroundings @returns {import('./fallback.js').Way} */
export function overEventStream({ url, fetch, setTimeout, clearTimeout, hear, end }) {
  const controller = new AbortController()
  const { signal } = controller
  /** @type {string[]} */
  const waiting = []
  let isSending = false
  /** Comments since the last answer to a request. */
  let unanswered = 0
  /** Set once it is closed, while something is still said. It would keep a program from ending. @type {any} */
  let closing
  let name = ''
  let batchCharactersMax = BATCH_CHARACTERS_MAX

  /** @param {string} reason @param {number} [code] @param {boolean} [isRefused] */
  function lose(reason, code = 1006, isRefused = false) {
    stop()
    end(code, reason, isRefused)
  }

  function stop() {
    clearTimeout(closing)
    controller.abort()
  }

  read().catch(error => lose(String(error)))

  async function read() {
    const response = await fetch(addressOf(url, 'stream'), { signal, cache: 'no-store' })
    if (!response.ok || !response.body) {
      // Full, or away for a moment: not blocked. A gateway that has no streams does not know the path.
      const { code, message } = await problemOf(response)
      const isRefused = response.status === 429 || response.status >= 500 || (code && code !== 'unknown_path')
      return lose(message, 1006, isRefused)
    }
    name = response.headers.get(NAME) ?? ''
    const reader = response.body.getReader()
    const decoder = new TextDecoder()
    /** Of an event that is not whole yet: to look through all of it again with each read would take a large one long. */
    let parts = ['']
    let characters = 0
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return lose('it ended')
      let text = decoder.decode(value, { stream: true })
      // The empty line after an event may come in two reads.
      if (text.startsWith('\n') && parts.at(-1)?.endsWith('\n')) text = `${parts.pop()}${text}`
      const [first, ...blocks] = text.split('\n\n')
      if (first !== '') parts.push(first)
      characters += first.length
      if (characters > EVENT_CHARACTERS_MAX) return lose('too long')
      for (const block of blocks) {
        const whole = parts.join('')
        parts = [block]
        characters = block.length
        take(whole)
      }
    }
  }

  /** @param {string} block a comment, or an event, whose data is one line and its last */
  function take(block) {
    // Not `.`, which ends at U+2028, too: JSON may hold it.
    const data = /^data: ([^\n]*)/m.exec(block)?.[1]
    if (data === undefined) {
      // A comment is the gateway's ping. A request under way answers it as well, unless its connection has died.
      if (block !== ':') return
      if (!isSending) send('')
      else if (++unanswered > UNANSWERED_MAX) lose('no answer')
      return
    }
    if (data.startsWith('{"type":"welcome"')) {
      batchCharactersMax = Math.min(BATCH_CHARACTERS_MAX, JSON.parse(data).limits.messageBytes / BYTES_PER_CHARACTER)
    }
    if (!block.startsWith('event: close\n')) return hear(frameOf(data))
    const { code, reason } = JSON.parse(data)
    lose(reason, code)
  }

  /** @param {string} text */
  function send(text) {
    waiting.push(text)
    if (!isSending) flush().catch(error => lose(String(error)))
  }

  async function flush() {
    isSending = true
    while (waiting.length > 0 && !signal.aborted) {
      let body = /** @type {string} */ (waiting.shift())
      while (waiting.length > 0 && body.length + waiting[0].length < batchCharactersMax) body += `\n${waiting.shift()}`
      const request = { method: 'POST', headers: { [NAME]: name }, body, signal }
      const response = await fetch(addressOf(url, 'stream/send'), request)
      unanswered = 0
      // Somebody on the way answers in the gateway's place otherwise.
      if (response.status === 204) continue
      if (response.status !== 429) {
        // Longer than a message may be, which a WebSocket is closed for with this code.
        return lose((await problemOf(response)).message, response.status === 413 ? 1009 : 1006)
      }
      // Of a proxy, not of a gateway: none has read it.
      waiting.unshift(body)
      await new Promise(resolve => setTimeout(() => resolve(0), AGAIN_MS))
    }
    isSending = false
    if (closing !== undefined) stop()
  }

  return {
    send,
    close() {
      if (!isSending) return controller.abort()
      closing = setTimeout(() => controller.abort(), CLOSING_MS)
    },
  }
}
