// Prints values and messages: JSON lines for programs, readable text for people.
import { inspect } from 'node:util'

/**
 * @typedef {{ write: (text: string) => unknown, isTTY?: boolean }} Output
 * @typedef {ReturnType<typeof createPrinter>} Printer
 * @typedef {import('../keycast.js').ValueState} ValueState
 */

/** @param {{ out: Output, err: Output, isJson: boolean }} options */
export function createPrinter({ out, err, isJson }) {
  /** @param {string} text */
  const note = text => void err.write(`keycast: ${printable(text)}\n`)

  /** @param {string} key @param {Record<string, unknown>} fields @param {string} text @param {number} [at] now unless given */
  function print(key, fields, text, at = Date.now()) {
    // JSON leaves some control characters as they are.
    if (isJson)
      return void out.write(`${JSON.stringify({ key, ...fields }, bytesAsBase64).replace(/\p{Cc}/gu, escaped)}\n`)
    out.write(`${timeOf(at)}  ${printable(key)}  ${text}\n`)
  }

  /** @param {unknown} value */
  const show = value => inspect(value, { depth: null, colors: out.isTTY, maxArrayLength: null })

  let wasLost = false
  return {
    note,

    /** @param {string} key @param {ValueState} state */
    state(key, { value, version, stale, error, changedAt }) {
      const problem = error && { code: error.code, message: error.message, retryAfterMs: error.retryAfterMs }
      const marks = [stale && `stale: ${stale.code}`, error && `${error.code}: ${printable(error.message)}`]
      const told = marks.filter(Boolean).map(mark => `(${mark})`)
      const shown = version === undefined ? [] : [show(value)]
      print(key, { value, version, stale, error: problem, changedAt }, [...shown, ...told].join('  '))
    },

    /** @param {string} key @param {unknown} value */
    value: (key, value) => print(key, { value }, show(value)),

    /** @param {string} key @param {import('../keycast.js').Message | import('../keycast.js').Gap} item of a room */
    message(key, item) {
      const { type, ...fields } = item
      if (item.type === 'gap') return print(key, { type, ...fields }, `(messages are missing: ${item.reason})`)
      const from = item.from === undefined ? '' : `${printable(item.from)}: `
      print(key, fields, `#${item.position.seq}  ${from}${show(item.data)}`, item.at)
    },

    /** @param {string} key @param {import('../keycast.js').Published} published */
    published(key, published) {
      const { position, duplicate, at } = published
      print(key, published, `#${position.seq}${duplicate ? '  (it was there already)' : ''}`, at)
    },

    /** @param {string} key @param {import('../keycast.js').MembersState} state */
    members(key, { count, members }) {
      const names = members?.map(({ name }) => printable(name)).join(', ') ?? ''
      print(key, { count, members }, `${count} there${names && `: ${names}`}`)
    },

    /** @param {string} key @param {unknown} error that of a publish names the message, to be sent again under that name */
    failure(key, error) {
      const { code, message, reason, messageId } =
        /** @type {{ code?: string, message: string, reason?: string, messageId?: string }} */ (error)
      const marks = [reason && `reason: ${printable(reason)}`, messageId && `--message-id ${messageId}`]
      const told = marks.filter(Boolean).map(mark => `  (${mark})`)
      print(
        key,
        { messageId, error: { code, message, reason } },
        `${code ? `${code}: ` : ''}${printable(message)}${told.join('')}`,
      )
    },

    /** @param {string} key @param {{ code: string, message: string }} error @param {number} repeats of it that were not printed */
    repeated(key, { code, message }, repeats) {
      const often = repeats === 1 ? 'once more' : `${repeats} times more`
      print(key, { error: { code, message }, repeats }, `${code}: ${printable(message)} (${often})`)
    },

    /** @param {import('../keycast.js').ConnectionState} state */
    connection(state) {
      if (state.name === 'waiting') {
        const seconds = Math.max(0, state.retryAt - Date.now()) / 1_000
        note(`${state.reason}; tries again in ${seconds.toFixed(1)} s`)
      } else if (state.name === 'open' && wasLost) note('connected again')
      else if (state.name === 'closed' && state.code !== undefined) note(`closed with ${state.code}: ${state.reason}`)
      wasLost = state.name === 'waiting' || (wasLost && state.name !== 'open')
    },
  }
}

/** The time of day, led by the date if that is not today. @param {number} at in milliseconds since 1970 */
function timeOf(at) {
  const date = new Date(at)
  const time = date.toTimeString().slice(0, 8)
  if (date.toDateString() === new Date().toDateString()) return time
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()]
  return `${day.map(number => String(number).padStart(2, '0')).join('-')} ${time}`
}

/** A stranger's text must not command the terminal. @param {string} text */
const printable = text => text.replace(/\p{Cc}/gu, character => inspect(character).slice(1, -1))

/** @param {string} control a character */
const escaped = control => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`

/** @param {string} _ @param {unknown} value */
const bytesAsBase64 = (_, value) =>
  value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value
