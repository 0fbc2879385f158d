// Runs one transcript against the JavaScript client: README.md explains each step.
import { isDeepStrictEqual } from 'node:util'
import { connect, KeycastError, TokenRefused } from '../keycast.js'
import { createWorld } from '../test-support.js'

const expectations = ['dials', 'out', 'hangs', 'asks', 'told', 'state', 'holds', 'answers', 'open']

/** The client does not follow the transcript. */
class NotFollowed extends Error {}

/**
 * Another gateway than the transcript's. `say`: what it sends in place of a message, nothing where it is `undefined`.
 *
 * @typedef {(message: object, bytes: Uint8Array | undefined) => { data: string | ArrayBuffer } | undefined} Say
 */

/**
 * @param {string} text of the file
 * @param {object} [options]
 * @param {ReturnType<typeof createWorld>} [options.world]
 * @param {Say} [options.say] then the client need not follow the transcript; what it throws is thrown all the same
 * @returns {Promise<{ keycast: import('../keycast.js').Keycast | undefined }>} the client as the transcript leaves it
 * @throws the client does not follow the transcript
 */
export async function runTranscript(text, { world = createWorld(), say } = {}) {
  const lines = text.trimEnd().split('\n')
  /** @type {import('../keycast.js').Keycast | undefined} */
  let keycast
  /** @type {Map<string, import('../keycast.js').ValueHandle>} */
  const handles = new Map()
  /** @type {Map<string, import('../keycast.js').RoomHandle>} */
  const rooms = new Map()
  /** @type {Map<string, { value?: any, error?: string }>} */
  const answers = new Map()
  /** The values of the names with `$`. @type {Map<string, unknown>} */
  const bound = new Map()
  /** Answers the latest call of the application's token function. */
  /** @type {{ give: (token: string) => void, refuse: (error: Error) => void }} */
  let answer = { give() {}, refuse() {} }

  /** @param {string} name */
  const roomOf = name => rooms.get(name) ?? fail('there is no such handle')

  const client = () => keycast ?? fail('the transcript has not connected yet')

  let isSameTurn = false
  for (const [index, line] of lines.entries()) {
    if (index === 0) continue
    try {
      const step = JSON.parse(line)
      take(step)
      isSameTurn = 'do' in step && 'do' in JSON.parse(lines[index + 1] ?? '{}')
      if (step.pass !== undefined) await world.pass(step.pass)
      else if (!isSameTurn) await world.settle()
    } catch (error) {
      if (say && (error instanceof NotFollowed || error instanceof KeycastError)) continue
      throw new Error(`line ${index + 1}, ${line}: ${/** @type {Error} */ (error).message}`, { cause: error })
    }
  }
  if (!say) nothingElse()
  return { keycast }

  /** @param {any} step */
  function take(step) {
    // With another gateway it is only looked for what names stand for.
    if (say && !('out' in step) && expectations.some(name => name in step)) return
    if (expectations.some(name => name in step)) return expectStep(step)
    if (!isSameTurn && !say) nothingElse()
    act(step)
  }

  /** @param {any} step */
  function act(step) {
    if (step.do) return doStep(step)
    if (step.in && say) return hear(say(filled(step.in), bodyOf(step)))
    if (step.in) return world.socket().say(filled(step.in), bodyOf(step))
    if (step.garbage !== undefined) return world.socket().onmessage?.({ data: step.garbage })
    if (step.lost) return world.socket().lose(step.lost)
    if (step.page) return world.page(step.page)
    if (step.gives) return answer.give(step.gives)
    if (step.refuses) return answer.refuse(new TokenRefused())
    if (step.fails) return answer.refuse(new Error('the network failed'))
    if (step.random !== undefined) world.network.random = step.random
    else if (step.pass === undefined) fail('there is no such step')
  }

  /** @param {{ data: string | ArrayBuffer } | undefined} event */
  function hear(event) {
    if (event) world.socket()?.onmessage?.(event)
  }

  /** @param {any} step */
  function doStep({ do: deed, key, as, token, keepMs = 0, keepForbidden, room: name, data, ...options }) {
    const room = name && roomOf(name)
    switch (deed) {
      case 'connect':
        keycast = connect('ws://gateway/ws', {
          environment: world.environment,
          keepMs,
          keepForbidden,
          token: token === true ? askForToken : token,
        })
        return
      case 'value':
        return handles.set(as, client().value(key))
      case 'room':
        return openRoom(as, key, options)
      case 'close':
        return (handles.get(as) ?? roomOf(as)).close()
      case 'get':
        return note(as, client().get(key))
      case 'publish':
        return note(as, room.publish(data, options))
      case 'history':
        return note(as, room.history(options))
      case 'join':
        return note(as, room.join(options.name, options.claim))
      case 'leave':
        return note(as, room.leave())
      case 'retry':
        return (handles.get(as) ?? roomOf(as)).retry()
      case 'reconnect':
        return client().reconnect()
      case 'end':
        return client().close()
      default:
        fail('there is no such deed')
    }
  }

  /** @param {string} as @param {string} key @param {import('../keycast.js').RoomOptions} options */
  function openRoom(as, key, options) {
    const room = client().room(key, options)
    rooms.set(as, room)
    room.on('message', ({ type, ...message }) => world.deeds.push({ told: as, ...message }))
    room.on('gap', ({ type, reason, ...gap }) => world.deeds.push({ told: as, gap: reason, ...gap }))
  }

  /** @param {string} as @param {Promise<unknown>} promise */
  function note(as, promise) {
    promise.then(
      value => answers.set(as, { value: plain(value ?? null) }),
      error => answers.set(as, { error: error instanceof KeycastError ? error.code : String(error) }),
    )
  }

  function askForToken() {
    world.deeds.push({ asks: true })
    return new Promise((give, refuse) => {
      answer = { give, refuse }
    })
  }

  /** @param {any} step */
  function expectStep(step) {
    if (step.state) return same(connectionState(step.state), step.state)
    if (step.holds) return holds(step)
    if (step.open) return same(answers.get(step.open), undefined)
    if (step.answers) {
      const { answers: name, ...answer } = step
      return same(without(answers.get(name)), answer)
    }
    const name = Object.keys(step)[0]
    const at = world.deeds.findIndex(deed => name in deed)
    if (at < 0) fail('it did not happen')
    const [deed] = world.deeds.splice(at, 1)
    if ('dials' in deed) same([deed.dials, deed.offers], [step.dials, 'keycast.v1.bytes'])
    if ('hangs' in deed && 'code' in step) same(deed.code, step.code)
    if ('out' in deed) same(deed.out, filled(step.out, deed.out))
    if ('told' in deed) {
      const fields = Object.keys(step).map(field => [field, /** @type {any} */ (deed)[field]])
      same(Object.fromEntries(fields), step)
    }
  }

  /** @param {any} expected */
  function connectionState(expected) {
    const { state } = client()
    const retryInMs = state.name === 'waiting' ? state.retryAt - world.now() : undefined
    /** @type {Record<string, unknown>} */
    const known = { ...state, retryInMs }
    return Object.fromEntries(Object.keys(expected).map(field => [field, known[field]]))
  }

  /** @param {any} step */
  function holds({ holds: name, ...expected }) {
    if (rooms.has(name)) return roomHolds(roomOf(name), expected)
    const state = handles.get(name)?.state ?? fail('there is no such handle')
    /** @type {Record<string, unknown>} */
    const shown = {
      value: plain(state.value),
      version: state.version,
      stale: state.stale ? state.stale.code : false,
      health: state.health,
      error: state.error?.code ?? null,
    }
    for (const [field, value] of Object.entries(expected)) same(shown[field] ?? null, value)
  }

  /** @param {import('../keycast.js').RoomHandle} room @param {Record<string, unknown>} expected */
  function roomHolds({ state, position, members }, expected) {
    /** @type {Record<string, unknown>} */
    const shown = {
      live: state.live,
      health: state.health,
      error: state.error?.code ?? null,
      pending: state.pending.map(({ data }) => data),
      joinedAs: state.joinedAs,
      position,
      count: members.state.count,
      members: members.state.members?.map(({ name }) => name),
    }
    for (const [field, value] of Object.entries(expected)) same(shown[field] ?? null, value)
  }

  function nothingElse() {
    if (world.deeds.length > 0) fail(`the client also did ${JSON.stringify(world.deeds)}`)
  }

  /**
   * Replaces names by their values, and learns new ones from sent messages.
   *
   * @param {any} pattern @param {any} [actual]
   */
  function filled(pattern, actual = {}) {
    const entries = Object.entries(pattern).map(([field, value]) => {
      if (typeof value !== 'string' || !value.startsWith('$')) return [field, value]
      if (!bound.has(value)) bound.set(value, actual[field])
      return [field, bound.get(value)]
    })
    return Object.fromEntries(entries)
  }
}

/** @param {any} step */
function bodyOf({ text, base64 }) {
  if (text !== undefined) return Buffer.from(text)
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64')
}

/**
 * A message as transcripts write it: without the client's own choices.
 *
 * @param {{ value?: any, error?: string } | undefined} answer
 */
function without(answer) {
  if (typeof answer?.value !== 'object' || answer.value === null) return answer
  const { messageId, claim, ...value } = answer.value
  if (!value.messages) return { value: JSON.parse(JSON.stringify(value)) }
  const messages = value.messages.map((/** @type {any} */ { type, ...message }) => message)
  return { value: JSON.parse(JSON.stringify({ ...value, messages })) }
}

/** @param {unknown} value */
const plain = value => (value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value)

/** @param {unknown} actual @param {unknown} expected */
function same(actual, expected) {
  if (!isDeepStrictEqual(actual, expected)) fail(`it is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`)
}

/** @param {string} why @returns {never} */
function fail(why) {
  throw new NotFollowed(why)
}
