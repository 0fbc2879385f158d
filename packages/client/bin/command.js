// The keycast command: reads its arguments, watches or gets keys, and prints what comes.
import { parseArgs } from 'node:util'
import { createPrinter } from './print.js'

const usage = `Usage: keycast watch KEY... [--url URL] [--json]
       keycast get KEY... [--url URL] [--json] [--timeout SECONDS]

  watch          prints each key's value and every change of it, until Ctrl+C
  get            prints each key's value once

  --url URL      the gateway, ws://127.0.0.1:8080/ws unless given
  --json         one JSON object a line; that is how it prints wherever the output is no terminal
  --timeout S    gives up a get after so many seconds, 10 unless given
  -h, --help     prints this

The connection's troubles go to the standard error. Exit code: 0, or 1 where a key could not be had, or 2 for wrong use.`

const options = /** @type {const} */ ({
  url: { type: 'string', default: 'ws://127.0.0.1:8080/ws' },
  json: { type: 'boolean', default: false },
  timeout: { type: 'string', default: '10' },
  help: { type: 'boolean', short: 'h', default: false },
})

/**
 * @typedef {import('../keycast.js').Keycast} Keycast
 *
 * @typedef {object} World
 * @property {(url: string) => Promise<Keycast>} open
 * @property {import('./print.js').Output} out
 * @property {import('./print.js').Output} err
 * @property {(stop: () => void) => void} onInterrupt
 */

/**
 * @param {string[]} words behind the command's name
 * @param {World} world
 * @returns {Promise<number>} the exit code
 */
export async function runCommand(words, world) {
  const { out, err } = world
  let command
  try {
    command = readCommand(words)
  } catch (error) {
    err.write(`keycast: ${/** @type {Error} */ (error).message}\n`)
    return 2
  }
  if (!command) {
    out.write(`${usage}\n`)
    return 0
  }

  const { name, keys, url, timeoutMs } = command
  const printer = createPrinter({ out, err, isJson: command.isJson || !out.isTTY })
  let keycast
  try {
    keycast = await world.open(url)
  } catch (error) {
    printer.note(/** @type {Error} */ (error).message)
    return 2
  }
  world.onInterrupt(keycast.close)
  keycast.on('state', printer.connection)
  const run = name === 'watch' ? watch : get
  const successes = await Promise.all(keys.map(key => run(/** @type {Keycast} */ (keycast), key, printer, timeoutMs)))
  keycast.close()
  return successes.every(Boolean) ? 0 : 1
}

/** @param {string[]} words */
function readCommand(words) {
  const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true })
  const [name, ...keys] = positionals
  if (values.help) return undefined
  if (name !== 'watch' && name !== 'get') throw new Error('say what to do: watch or get (--help tells more)')
  if (keys.length === 0) throw new Error(`say which key to ${name}, such as conversation:1`)
  const timeoutMs = Number(values.timeout) * 1_000
  if (!(timeoutMs > 0)) throw new Error(`--timeout ${values.timeout}: must be a number of seconds above 0`)
  return { name, keys: [...new Set(keys)], url: values.url, timeoutMs, isJson: values.json }
}

/**
 * @param {Keycast} keycast
 * @param {string} key
 * @param {import('./print.js').Printer} printer
 * @returns {Promise<boolean>} false where the subscription ended with an error
 */
async function watch(keycast, key, printer) {
  try {
    for await (const state of keycast.value(key)) printer.state(key, state)
    return true
  } catch (error) {
    printer.failure(key, error)
    return false
  }
}

/**
 * @param {Keycast} keycast
 * @param {string} key
 * @param {import('./print.js').Printer} printer
 * @param {number} timeoutMs
 */
async function get(keycast, key, printer, timeoutMs) {
  // A timer that is cleared: AbortSignal.timeout would not keep a process alive that waits for its network.
  const giveUp = new AbortController()
  const timer = setTimeout(() => giveUp.abort(new Error(`no answer within ${timeoutMs / 1_000} s`)), timeoutMs)
  try {
    printer.value(key, await keycast.get(key, { signal: giveUp.signal }))
    return true
  } catch (error) {
    printer.failure(key, error)
    return false
  } finally {
    clearTimeout(timer)
  }
}
