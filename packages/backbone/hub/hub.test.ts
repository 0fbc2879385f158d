import { BEAT_MS, createContainment } from '@keycast/service'
import { encodeMessage } from '../wire/envelope.ts'
import { valuesCodec } from '../wire/values-codec.ts'
import { createHub, type FromGateways } from './hub.ts'

const turn = () => new Promise(setImmediate)

/** The time it takes to forget a key, on the clock of these tests. */
const FORGET_MS = 0.01

/** A hub whose sockets and clock are the test's. */
async function setup({
  codec = valuesCodec,
  onWatch = () => {},
  answersFor = () => ({ answers: [], more: false }),
}: {
  codec?: any
  onWatch?: (key: string) => void
  answersFor?: () => any
} = {}) {
  let at = 100_000
  let tick = () => {}
  let hasReadAll = true
  let forgotten = 0
  let from: FromGateways = { request() {}, beat() {} }
  const sent: string[] = []
  const watched: string[] = []
  const logged: string[] = []
  /** What is left of each command's time. */
  const lefts: number[] = []
  const note = (_: unknown, text: string) => logged.push(text)
  const containment = createContainment({ now: () => 0, ends: ['link'], log: { error() {} } as any })
  const hub = createHub({
    codec,
    containment,
    bind: async handlers => {
      from = handlers
      return {
        send(_, parts) {
          const { type, link } = JSON.parse(parts[0].toString())
          sent.push(link === 'L' ? type : `${type} to ${link}`)
        },
        close: async () => {},
        hasReadAll: async () => hasReadAll,
      }
    },
    turn: run => void setImmediate(run),
    now: () => at,
    every: (_, run) => {
      tick = run
      return () => {}
    },
    log: { info() {}, warn: note, error: note, debug() {} } as any,
  })
  await hub.start({
    onWatch(_: string, { key }: { key: string }) {
      onWatch(key)
      watched.push(key)
    },
    onUnwatch() {},
    onCommand: (_link: string, _id: string, _: any, left: number) => lefts.push(left),
    *onLinkLost() {
      for (let key = 0; key < 10_000; key++) {
        at += FORGET_MS
        forgotten++
        yield
      }
    },
    answersFor,
  } as any)
  let requests = 0
  return {
    sent,
    watched,
    logged,
    lefts,
    forgotten: () => forgotten,
    contained: containment.counts,
    hub,
    beat(announced: number, wire: string = valuesCodec.wire, link = 'L', taken = 0) {
      from.beat(encodeMessage({ type: 'beat', link, wire, number: announced, taken }), Buffer.from('route'))
    },
    request(says?: object) {
      requests += 1
      const watch = { type: 'watch', wants: [{ key: `doc:${requests}` }] }
      from.request([encodeMessage({ link: 'L', number: requests, ...(says ?? watch) })])
    },
    command(leftMs?: number, of: { link: string; number: number } = { link: 'L', number: ++requests }) {
      const commands = [{ id: `c${requests}`, command: { type: 'authorize', key: 'doc:1 v' }, leftMs }]
      from.request([encodeMessage({ type: 'command', ...of, commands, parts: [0] })])
    },
    /** Time in which this process stands still. */
    stall(ms: number) {
      at += ms
    },
    /** Whether requests wait to be read. */
    setWaiting(wait: boolean) {
      hasReadAll = !wait
    },
    pass(ms: number) {
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

test('a link that says much is told what was read before its beat is due, for it waits for that', async () => {
  const { beat, request, sent } = await setup()
  beat(0)
  const keys = Array.from({ length: 500 }, (_, key) => `doc:${'k'.repeat(200)}${key}`)
  for (let count = 0; count < 4; count++) request({ type: 'unwatch', keys })
  expect(sent).toEqual(['beat'])
  for (let count = 0; count < 4; count++) request({ type: 'unwatch', keys })
  expect(sent).toEqual(['beat', 'beat'])
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
  await turn()
  expect(sent.at(-1)).toBe('resync')
})

test('a link of which nothing was read while others were is behind, not lost', async () => {
  const { beat, request, pass, sent, setWaiting } = await setup()
  beat(0)
  setWaiting(true)
  for (let second = 0; second < 5; second++) {
    beat(2)
    await turn()
    pass(BEAT_MS)
  }
  expect(sent).not.toContain('resync')
  request()
  setWaiting(false)
  for (let second = 0; second < 2; second++) {
    beat(2)
    await turn()
    pass(BEAT_MS)
  }
  expect(sent.at(-1)).toBe('resync')
})

test('a hub whose own process stood still takes no link for lossy', async () => {
  const { beat, request, pass, sent } = await setup()
  beat(0)
  pass(BEAT_MS)
  beat(2)
  pass(5 * BEAT_MS)
  // All messages that waited arrive at once, beats before requests.
  for (let beats = 0; beats < 5; beats++) beat(2)
  await turn()
  expect(sent).not.toContain('resync')
  request()
  request()
  pass(BEAT_MS)
  beat(2)
  await turn()
  expect(sent).not.toContain('resync')
})

test('what is read after a standstill may have waited for all of it, until everything was read', async () => {
  const { beat, command, stall, pass, setWaiting, lefts } = await setup()
  beat(0)
  command(5_000)
  command()
  expect(lefts.splice(0)).toEqual([5_000, Number.POSITIVE_INFINITY])

  stall(60_000)
  setWaiting(true)
  command(5_000)
  command()
  // A new link says nothing before this hub has answered it.
  beat(0, valuesCodec.wire, 'M')
  command(5_000, { link: 'M', number: 1 })
  for (let second = 0; second < 3; second++) {
    pass(BEAT_MS)
    await turn()
    beat(4)
  }
  command(61_000)
  expect(lefts.splice(0)).toEqual([-55_000, Number.POSITIVE_INFINITY, 5_000, 1_000])

  setWaiting(false)
  pass(BEAT_MS)
  await turn()
  command(5_000)
  expect(lefts).toEqual([5_000])
})

test('a hub whose process stands still again and again forgets a gateway that is gone, and no other', async () => {
  const { beat, pass, hub } = await setup()
  beat(0)
  for (let stalls = 0; stalls < 10; stalls++) {
    pass(BEAT_MS + 700)
    beat(0)
  }
  expect(hub.stats().links).toBe(1)
  for (let stalls = 0; stalls < 3; stalls++) pass(BEAT_MS + 700)
  expect(hub.stats().links).toBe(0)
})

test('a gateway of another major wire version is not served and told so, and the log says it once a minute', async () => {
  const { beat, pass, sent, logged, hub } = await setup()
  for (let second = 0; second < 90; second++) {
    pass(BEAT_MS)
    beat(second, 'values/3.0')
  }
  expect(hub.stats().links).toBe(0)
  expect(new Set(sent)).toEqual(new Set(['beat']))
  expect(logged).toHaveLength(2)
  expect(logged[0]).toContain('run the same release')
})

test('a gateway that names no wire version is not answered: it would take that for a welcome', async () => {
  const { beat, sent, logged } = await setup()
  beat(0, null as any)
  expect(sent).toEqual([])
  expect(logged).toHaveLength(1)
})

test('requests of unknown kinds are ignored and logged once a minute; the link goes on', async () => {
  const { beat, request, pass, sent, watched, logged } = await setup()
  beat(0, 'values/2.0')
  for (let i = 0; i < 3; i++) request({ type: 'hum', tune: 'any' })
  request({ type: 'notice', notice: { type: 'rumour' } })
  request({ type: 'watch', wants: [{ key: 'doc:1', mood: 'new' }], colour: 'new' })
  for (let second = 0; second < 3; second++) {
    pass(BEAT_MS)
    beat(5, 'values/2.0')
  }
  expect(watched).toEqual(['doc:1'])
  expect(new Set(sent)).toEqual(new Set(['beat']))
  expect(logged).toEqual([expect.stringContaining('unknown kind')])
})

test('what a link said is forgotten over many turns', async () => {
  const { beat, pass, forgotten } = await setup()
  beat(0)
  for (let beats = 0; beats < 3; beats++) pass(BEAT_MS)
  for (let before = 0; before < 10_000; ) {
    await turn()
    expect(forgotten() - before).toBeGreaterThan(0)
    expect(forgotten() - before).toBeLessThan(1_000)
    before = forgotten()
  }
  await turn()
  expect(forgotten()).toBe(10_000)
})

describe('an error that no code foresaw', () => {
  const bug = () => {
    throw new TypeError('a bug')
  }

  test('while a request is read ends its link, which its next beat shows', async () => {
    const codec = { ...valuesCodec, readPosition: bug }
    const { beat, request, pass, sent, watched, contained } = await setup({ codec })
    beat(0)
    request({ type: 'watch', wants: [{ key: 'doc:bad', position: {} }] })
    for (let second = 0; second < 3; second++) {
      pass(BEAT_MS)
      beat(1)
      await turn()
    }
    expect(sent).toContain('resync')
    expect(watched).toEqual([])
    expect(contained).toEqual({ link: 1, process: 0 })
  })

  test('while a request is handled ends its link: the gateway says all again; no other link notices', async () => {
    const { beat, request, sent, watched, contained } = await setup({ onWatch: key => key === 'doc:bad' && bug() })
    beat(0)
    beat(0, undefined, 'M')
    request({ type: 'watch', wants: [{ key: 'doc:bad' }] })
    expect(sent.slice(-1)).toEqual(['resync'])
    request({ link: 'M', number: 1, type: 'watch', wants: [{ key: 'doc:good' }] })
    beat(1, undefined, 'M')
    expect(watched).toEqual(['doc:good'])
    expect(sent.slice(-1)).toEqual(['beat to M'])
    expect(contained).toEqual({ link: 1, process: 0 })
  })

  test('while an answer is made ends the link that it was for', async () => {
    const { hub, beat, sent, contained } = await setup({ answersFor: bug })
    beat(0)
    hub.tell('L', 'doc:1')
    await turn()
    expect(sent.slice(-1)).toEqual(['resync'])
    expect(contained).toEqual({ link: 1, process: 0 })
  })
})

test('a gateway that beats and takes nothing of what it is sent says everything again; a slow one goes on', async () => {
  const body = Buffer.alloc(9 * 2 ** 20)
  const content = { version: 'v', contentType: 'text/plain', format: 'text', body }
  const answer = { type: 'value', key: 'doc:1', ageMs: 0, maxAgeMs: 0, store: true, ...content }
  const { beat, pass, hub, sent } = await setup({ answersFor: () => ({ answers: [answer], more: false }) })
  beat(0)
  hub.tell('L', 'doc:1')
  await turn()
  expect(sent).toEqual(['beat', 'answers'])
  let taken = 0
  const beatFor = (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      pass(BEAT_MS)
      beat(0, valuesCodec.wire, 'L', taken)
    }
  }
  for (; taken < 5; taken++) beatFor(50)
  expect(sent).not.toContain('resync')
  beatFor(59)
  expect(sent).not.toContain('resync')
  beatFor(2)
  expect(sent).toContain('resync')
})
