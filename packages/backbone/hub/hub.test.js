import { BEAT_MS } from '@keycast/service'
import { createHub } from './hub.js'

/** A hub whose sockets and clock are the test's. */
async function setup() {
  let at = 100_000
  let tick = () => {}
  /** @type {import('./hub.js').FromGateways} */
  let from = { request() {}, beat() {} }
  /** @type {string[]} */
  const sent = []
  /** @type {string[]} */
  const watched = []
  const hub = createHub({
    bind: async handlers => {
      from = handlers
      return {
        send: (_, parts) => void sent.push(JSON.parse(parts[0].toString()).type),
        close: async () => {},
      }
    },
    now: () => at,
    every: (_, run) => {
      tick = run
      return () => {}
    },
    log: /** @type {any} */ ({ info() {}, warn() {}, error() {}, debug() {} }),
  })
  await hub.start(
    /** @type {any} */ ({
      onWatch: (/** @type {string} */ _, /** @type {{ key: string }} */ { key }) => watched.push(key),
      onLinkLost() {},
    }),
  )
  let requests = 0
  return {
    sent,
    watched,
    /** @param {number} announced */
    beat(announced) {
      from.beat({ type: 'beat', link: 'L', number: announced, taken: 0 }, Buffer.from('route'))
    },
    request() {
      requests += 1
      from.request({ type: 'watch', link: 'L', number: requests, wants: [{ key: `doc:${requests}`, held: undefined }] })
    },
    /** @param {number} ms */
    pass(ms) {
      at += ms
      tick()
    },
  }
}

test('a link whose requests come slower than it announces them is behind, not lost', async () => {
  const { beat, request, pass, sent, watched } = await setup()
  beat(0)
  for (let second = 0; second < 5; second++) {
    pass(BEAT_MS)
    beat(200)
    request()
  }
  expect(watched).toHaveLength(5)
  expect(new Set(sent)).toEqual(new Set(['beat']))
})

test('a link that announced requests and then stands still is asked to say everything again', async () => {
  const { beat, request, pass, sent } = await setup()
  beat(0)
  request()
  pass(BEAT_MS)
  beat(2)
  expect(sent).not.toContain('resync')
  pass(BEAT_MS)
  beat(2)
  expect(sent.at(-1)).toBe('resync')
})

test('who stood still itself judges nobody by it', async () => {
  const { beat, request, pass, sent } = await setup()
  beat(0)
  pass(BEAT_MS)
  beat(2)
  pass(5 * BEAT_MS)
  // All that waited meanwhile comes at once, beats before requests.
  for (let beats = 0; beats < 5; beats++) beat(2)
  expect(sent).not.toContain('resync')
  request()
  request()
  pass(BEAT_MS)
  beat(2)
  expect(sent).not.toContain('resync')
})
