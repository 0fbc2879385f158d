// The keycast command: reads its arguments, does one thing with values or rooms, and prints the results.
import { parseArgs } from 'node:util'
import { createPrinter } from './print.js'

const usage = `Usage: keycast watch KEY... [--last N]
       keycast get KEY...
       keycast publish KEY DATA [--message-id ID]
       keycast history KEY [--limit N]
       keycast members KEY

  watch             prints each value and every change of it, or each message of a room, until Ctrl+C
  get               prints each key's value once
  publish           publishes into a room. DATA is JSON; what is no JSON is sent as text
  history           prints the newest messages of a room
  members           prints who is in a room

  --url URL         the gateway, ws://127.0.0.1:8080/ws unless given
  --json            one JSON object a line; that is how it prints wherever the output is no terminal
  --timeout S       gives up after so many seconds, 10 unless given; watch never does
  --last N          begins with so many messages of a room, 0 to 500; 0 unless given
  --limit N         so many messages, 1 to 500; 50 unless given
  --message-id ID   16 to 64 characters of A-Z a-z 0-9 _ -: a message that was published under it is not published twice
  -h, --help        prints this

KEYCAST_TOKEN in the environment is the token. The connection's troubles go to the standard error. An error that comes
again is printed once, and with a count when another thing comes. A watch ends where every key is refused
(unauthenticated, forbidden, unknown_namespace) or has ended. Exit code: 0, also of a watch that Ctrl+C or SIGTERM ends;
1 after an error; 2 for wrong use.`

const options = /** @type {const} */ ({
  url: { type: 'string', default: 'ws://127.0.0.1:8080/ws' },
  json: { type: 'boolean', default: false },
  timeout: { type: 'string', default: '10' },
  last: { type: 'string', default: '0' },
  limit: { type: 'string', default: '50' },
  'message-id': { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
})

/**
 * @typedef {import('../keycast.js').Keycast} Keycast
 * @typedef {import('./print.js').Printer} Printer
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

  const { keys, url } = command
  const printer = createPrinter({ out, err, isJson: command.isJson || !out.isTTY })
  /** @type {Keycast} */
  let keycast
  try {
    keycast = await world.open(url)
  } catch (error) {
    printer.note(/** @type {Error} */ (error).message)
    return 2
  }
  world.onInterrupt(keycast.close)
  keycast.on('state', printer.connection)
  const lost = createLost(keys.length, keycast.close)
  const successes = await Promise.all(
    keys.map(async key => {
      try {
        await run(keycast, key, command, { printer, lost })
        return !lost.isAll()
      } catch (error) {
        printer.failure(key, error)
        lost.set(key, true)
        return false
      }
    }),
  )
  keycast.close()
  return successes.every(Boolean) ? 0 : 1
}

/** @typedef {NonNullable<ReturnType<typeof readCommand>>} Command */

/** @param {string[]} words */
function readCommand(words) {
  const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true })
  if (values.help) return undefined
  const [name = '', ...rest] = positionals
  if (!['watch', 'get', 'publish', 'history', 'members'].includes(name)) {
    throw new Error('say what to do: watch, get, publish, history or members (--help tells more)')
  }
  if (rest.length === 0) throw new Error(`say which key to ${name}, such as conversation:1`)
  if (name === 'publish' && rest.length !== 2) throw new Error('publish takes a key and the data')
  if ((name === 'history' || name === 'members') && rest.length !== 1) throw new Error(`${name} takes one key`)
  const keys = name === 'publish' ? [rest[0]] : [...new Set(rest)]
  return {
    name,
    keys,
    data: rest[1],
    url: values.url,
    isJson: values.json,
    timeoutMs: secondsOf(values.timeout, '--timeout') * 1_000,
    last: countOf(values.last, '--last', 0),
    limit: countOf(values.limit, '--limit', 1),
    messageId: values['message-id'],
  }
}

/** A timer takes no more milliseconds than fit into 31 bits: it would end at once. */
const SECONDS_MAX = 2_147_483

/** @param {string} text @param {string} option */
function secondsOf(text, option) {
  const seconds = Number(text)
  if (seconds > 0 && seconds <= SECONDS_MAX) return seconds
  throw new Error(`${option} ${text}: must be a number above 0, and ${SECONDS_MAX} at most`)
}

/** A gateway gives at most so many messages at once. */
const MESSAGES_MAX = 500

/** @param {string} text @param {string} option @param {number} min */
function countOf(text, option, min) {
  const count = Number(text)
  if (Number.isInteger(count) && count >= min && count <= MESSAGES_MAX) return count
  throw new Error(`${option} ${text}: must be a whole number from ${min} to ${MESSAGES_MAX}`)
}

/** @typedef {ReturnType<typeof createLost>} Lost */

/**
 * The keys of which nothing can be had: they have ended, or the user has no right. Once all are among them, the command
 * ends.
 *
 * @param {number} count of the keys @param {() => void} onAll
 */
function createLost(count, onAll) {
  const lost = new Set()
  const isAll = () => lost.size === count
  return {
    isAll,
    /** @param {string} key @param {boolean} isLost */
    set(key, isLost) {
      if (isAll()) return
      if (isLost) lost.add(key)
      else lost.delete(key)
      if (isAll()) onAll()
    },
  }
}

/** @param {Keycast} keycast @param {string} key @param {Command} command @param {{ printer: Printer, lost: Lost }} to */
async function run(keycast, key, command, { printer, lost }) {
  const { name, last, limit, timeoutMs, messageId } = command
  if (name === 'watch') return watch(keycast, key, last, { printer, lost })
  // A timer that is cleared: AbortSignal.timeout would not keep a process alive that waits for its network.
  const giveUp = new AbortController()
  const timer = setTimeout(() => giveUp.abort(timedOut(timeoutMs, keycast)), timeoutMs)
  const { signal } = giveUp
  try {
    if (name === 'get') return printer.value(key, await keycast.get(key, { signal }))
    const room = keycast.room(key, { follow: name === 'members', presence: name === 'members' })
    if (name === 'members') return printer.members(key, await membersOf(room, signal))
    if (name === 'history') {
      const { messages } = await room.history({ limit, signal })
      for (const message of messages) printer.message(key, message)
      return
    }
    printer.published(key, await room.publish(readData(command.data), { messageId, deadlineMs: timeoutMs }))
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The error of a call that ran out of time, with the connection's problem if that is the reason.
 *
 * @param {number} ms @param {Keycast} keycast
 */
function timedOut(ms, { state }) {
  const why = 'reason' in state ? `: ${state.reason}` : ''
  return Object.assign(new Error(`no answer within ${ms / 1_000} s${why}`), { code: 'timeout' })
}

/** @param {string} text */
function readData(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * The room's members, once they are known.
 *
 * @param {import('../keycast.js').RoomHandle} room @param {AbortSignal} signal
 * @returns {Promise<import('../keycast.js').MembersState>}
 */
const membersOf = (room, signal) =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
    // An error that heals goes on without a member being told, but one for `presence`: nobody is told of members there.
    room.on('change', ({ error }) => error && error.retryAfterMs === undefined && reject(error))
    room.members.on('change', resolve)
  })

/**
 * A key does not say whether it is a room or a value. The gateway does.
 *
 * @param {Keycast} keycast @param {string} key @param {number} last @param {{ printer: Printer, lost: Lost }} to
 */
async function watch(keycast, key, last, { printer, lost }) {
  const errors = createErrors(key, printer)
  const room = keycast.room(key, { last })
  room.on('change', ({ error, health }) => {
    if (health === 'ended') return
    if (errors.isNew(error) && error) printer.failure(key, error)
    lost.set(key, health === 'forbidden')
  })
  try {
    for await (const item of room) {
      errors.over()
      printer.message(key, item)
    }
  } catch (error) {
    if (/** @type {any} */ (error).code !== 'not_a_room') throw error
    room.close()
    for await (const state of keycast.value(key)) {
      // A backend's error may come again beside another value.
      if (errors.isNew(state.error, state.version)) printer.state(key, state)
      lost.set(key, state.health === 'forbidden')
    }
  } finally {
    errors.over()
  }
}

/**
 * Knows which error of a key was printed: it comes again each time that the key is asked for again.
 *
 * @param {string} key @param {Printer} printer
 */
function createErrors(key, printer) {
  /** @type {{ error: import('../keycast.js').KeycastError, about: unknown } | undefined} */
  let last
  let repeats = 0

  function over() {
    if (last && repeats > 0) printer.repeated(key, last.error, repeats)
    last = undefined
    repeats = 0
  }

  return {
    over,

    /**
     * @param {import('../keycast.js').KeycastError | undefined} error none where there is none any more
     * @param {unknown} [about] what is printed with it
     */
    isNew(error, about) {
      if (
        error &&
        last &&
        last.about === about &&
        last.error.code === error.code &&
        last.error.message === error.message
      ) {
        if (error !== last.error) repeats++
        last.error = error
        return false
      }
      over()
      last = error && { error, about }
      return true
    },
  }
}
