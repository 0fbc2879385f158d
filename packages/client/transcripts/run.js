// Runs one transcript against the JavaScript client: README.md says what each step means.
import { isDeepStrictEqual } from 'node:util'
import { connect, KeycastError, TokenRefused } from '../keycast.js'
import { createWorld } from '../test-support.js'

const expectations = ['dials', 'out', 'hangs', 'asks', 'state', 'holds', 'answers', 'open']

/**
 * @param {string} text of the file
 * @returns {Promise<void>}
 * @throws where the client does not do as the transcript says
 */
export async function runTranscript(text) {
  const lines = text.trimEnd().split('\n')
  const world = createWorld()
  /** @type {import('../keycast.js').Keycast | undefined} */
  let keycast
  /** @type {Map<string, import('../keycast.js').ValueHandle>} */
  const handles = new Map()
  /** @type {Map<string, { value?: unknown, error?: string }>} */
  const answers = new Map()
  /** The values of the names with `$`. @type {Map<string, unknown>} */
  const bound = new Map()
  /** Answers the application's function for tokens that was called last. */
  /** @type {{ give: (token: string) => void, refuse: (error: Error) => void }} */
  let answer = { give() {}, refuse() {} }

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
      throw new Error(`line ${index + 1}, ${line}: ${/** @type {Error} */ (error).message}`)
    }
  }
  nothingElse()

  /** @param {any} step */
  function take(step) {
    if (expectations.some(name => name in step)) return expectStep(step)
    if (!isSameTurn) nothingElse()
    act(step)
  }

  /** @param {any} step */
  function act(step) {
    if (step.do) return doStep(step)
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

  /** @param {any} step */
  function doStep({ do: deed, key, as, token }) {
    switch (deed) {
      case 'connect':
        keycast = connect('ws://gateway/ws', {
          environment: world.environment,
          token: token === true ? askForToken : token,
        })
        return
      case 'value':
        return handles.set(as, client().value(key))
      case 'close':
        return handles.get(as)?.close()
      case 'get':
        client()
          .get(key)
          .then(
            value => answers.set(as, { value: plain(value) }),
            error => answers.set(as, { error: error instanceof KeycastError ? error.code : String(error) }),
          )
        return
      case 'reconnect':
        return client().reconnect()
      case 'end':
        return client().close()
      default:
        fail('there is no such deed')
    }
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
      return same(answers.get(name), answer)
    }
    const name = Object.keys(step)[0]
    const at = world.deeds.findIndex(deed => name in deed)
    if (at < 0) fail('it did not happen')
    const [deed] = world.deeds.splice(at, 1)
    if ('dials' in deed) same([deed.dials, deed.offers], [step.dials, 'keycast.v1.bytes'])
    if ('out' in deed) same(deed.out, filled(step.out, deed.out))
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
    const state = handles.get(name)?.state ?? fail('there is no such handle')
    /** @type {Record<string, unknown>} */
    const shown = {
      value: plain(state.value),
      version: state.version,
      stale: state.stale ? state.stale.code : false,
      error: state.error?.code ?? null,
    }
    for (const [field, value] of Object.entries(expected)) same(shown[field] ?? null, value)
  }

  function nothingElse() {
    if (world.deeds.length > 0) fail(`the client also did ${JSON.stringify(world.deeds)}`)
  }

  /** Puts in what names stand for, and learns new ones from what was sent. @param {any} pattern @param {any} [actual] */
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

/** @param {unknown} value */
const plain = value => (value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value)

/** @param {unknown} actual @param {unknown} expected */
function same(actual, expected) {
  if (!isDeepStrictEqual(actual, expected)) fail(`it is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`)
}

/** @param {string} why @returns {never} */
function fail(why) {
  throw new Error(why)
}
