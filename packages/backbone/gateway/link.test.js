import { BEAT_MS, SILENT_MS } from '@keycast/service'
import { encodeMessage } from '../wire/envelope.js'
import { valuesCodec } from '../wire/values-codec.js'
import { createLink } from './link.js'

const turn = () => new Promise(setImmediate)

/** A link whose sockets, clock and node are the test's. */
function setup() {
  let at = 0
  let tick = () => {}
  /** @typedef {(error: Error) => void} Fail */
  /** @type {{ id: string, from: (parts: Buffer[]) => void, requests: any[], isOpen: boolean, fail: Fail }[]} */
  const dialled = []
  /** @type {string[]} */
  const events = []
  /** @type {string[]} */
  const logged = []
  const note = (/** @type {unknown} */ _, /** @type {string} */ text) => logged.push(text)
  /** @type {any} */
  const log = { debug() {}, info() {}, warn: note, error: note }
  /** Whether sockets have room for a request. */
  let hasRoom = true
  const link = createLink({
    codec: valuesCodec,
    dial: from => {
      const pair = {
        id: '',
        from,
        requests: /** @type {any[]} */ ([]),
        isOpen: true,
        fail: (/** @type {Error} */ _) => {},
      }
      dialled.push(pair)
      return {
        request: ([part]) => {
          if (hasRoom) return Promise.resolve(void pair.requests.push(JSON.parse(part.toString())))
          return new Promise((_, reject) => {
            pair.fail = reject
          })
        },
        beat: part => {
          pair.id = JSON.parse(part.toString()).link
        },
        close: () => {
          pair.isOpen = false
          pair.fail(new Error('closed'))
        },
      }
    },
    events: {
      position: () => undefined,
      onAnswer: answer => events.push(`answer ${answer.key}`),
      onAlive: () => events.push('alive'),
      onDead: () => events.push('dead'),
    },
    now: () => at,
    every: (_, run) => {
      tick = run
      return () => {
        tick = () => {}
      }
    },
    log,
  })
  link.start()
  const last = () => dialled[dialled.length - 1]
  /** The node says something. @param {object} message */
  const say = message => last().from([encodeMessage({ link: last().id, ...message })])
  return {
    link,
    dialled,
    events,
    last,
    /** @param {boolean} room */
    setRoom: room => {
      hasRoom = room
    },
    /** The node answers a beat. */
    answer: (reached = 0) => say({ type: 'beat', wire: valuesCodec.wire, reached, answered: 0 }),
    say,
    logged,
    /** @param {number} beats */
    pass(beats) {
      for (let beat = 0; beat < beats; beat++) {
        at += BEAT_MS
        tick()
      }
    },
  }
}

test('a link that fails again and again is made anew once a beat, not as fast as it fails', async () => {
  const { link, dialled, last, answer, pass } = setup()
  link.watch('a:1')
  for (let second = 0; second < 3; second++) {
    pass(1)
    for (let failure = 0; failure < 10; failure++) {
      answer()
      await turn()
      last().from([Buffer.from('{')])
    }
  }
  expect(dialled).toHaveLength(4)
  expect(dialled.filter(({ isOpen }) => isOpen)).toHaveLength(0)

  pass(1)
  answer()
  await turn()
  expect(last().requests).toMatchObject([{ type: 'watch', number: 1 }])
})

test('a node that never says anything but what cannot be read is dead', () => {
  const { last, answer, pass, events } = setup()
  answer()
  last().from([Buffer.from('{')])
  for (let second = 0; second < 5; second++) {
    pass(1)
    last().from([Buffer.from('{')])
  }
  expect(events).toEqual(['alive', 'dead'])
})

test('a link that was stopped stays so, also with a request under way', async () => {
  for (const room of [true, false]) {
    const { link, dialled, answer, pass, setRoom } = setup()
    answer()
    setRoom(room)
    link.watch('a:1')
    if (!room) await turn()
    link.stop()
    await turn()
    pass(5)
    expect(dialled).toHaveLength(1)
    expect(dialled[0].isOpen).toBe(false)
  }
})

test('a node that takes its leave is dead at once, and looked for again', () => {
  const { events, dialled, say, answer, pass } = setup()
  answer()
  say({ type: 'bye' })
  expect(events).toEqual(['alive', 'dead'])

  pass(1)
  expect(dialled).toHaveLength(2)
  answer()
  expect(events).toEqual(['alive', 'dead', 'alive'])
})

test('a node that never speaks is reported each time its silence is over', () => {
  const { events, pass } = setup()
  pass((2 * SILENT_MS) / BEAT_MS)
  expect(events).toEqual(['dead', 'dead'])
})

test('a node of another major wire version is not used and not dialled again, and its log says so once a minute', () => {
  const { events, dialled, last, say, answer, pass, logged, link } = setup()
  answer()
  link.watch('a:1')
  for (let second = 0; second < 90; second++) {
    pass(1)
    say({ type: 'beat', wire: 'values/2.0', reached: 0, answered: 0, somethingNew: true })
  }
  expect(events).toEqual(['alive', 'dead'])
  expect(dialled).toHaveLength(2)
  expect(last().requests).toEqual([])
  expect(logged.filter(text => text.includes('another wire version'))).toHaveLength(2)

  pass(1)
  answer()
  expect(events).toEqual(['alive', 'dead', 'alive'])
})

test('a node of a newer minor version is used: what is new is skipped, and logged once a minute', () => {
  const { events, dialled, last, say, pass, logged, link } = setup()
  const beat = { type: 'beat', wire: 'values/1.7', reached: 0, answered: 0 }
  say(beat)
  link.watch('a:1')
  for (let number = 1; number <= 3; number++) {
    last().from([
      encodeMessage({
        type: 'answers',
        link: last().id,
        number,
        reached: 1,
        answers: [{ type: 'hologram', key: 'a:1' }],
        parts: [1],
      }),
      Buffer.from('body'),
    ])
  }
  pass(1)
  say({ ...beat, answered: 3 })
  expect(dialled).toHaveLength(1)
  expect(events).toEqual(['alive'])
  expect(logged).toEqual([expect.stringContaining('unknown kind')])
})

test('a node whose socket for requests is blocked dies for all its beats; an idle one does not', async () => {
  const { link, events, answer, pass, setRoom, last } = setup()
  setRoom(false)
  for (let second = 0; second < 30; second++) {
    answer()
    await turn()
    pass(1)
  }
  expect(events).toEqual(['alive'])

  link.watch('a:1')
  for (let second = 0; second < 30; second++) {
    answer()
    await turn()
    last().fail(new Error('EAGAIN'))
    await turn()
    pass(1)
  }
  expect(events).toEqual(['alive', 'dead'])

  setRoom(true)
  answer()
  await turn()
  expect(events).toEqual(['alive', 'dead'])
  answer(1)
  expect(events).toEqual(['alive', 'dead', 'alive'])
})
