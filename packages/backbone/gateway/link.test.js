import { BEAT_MS, SILENT_MS } from '@keycast/service'
import { createLink } from './link.js'

/** @type {any} */
const log = { debug() {}, info() {}, warn() {}, error() {} }
const turn = () => new Promise(setImmediate)

/** A link whose sockets, clock and node are the test's. */
function setup() {
  let at = 0
  let tick = () => {}
  /** @type {{ id: string, from: import('./link.js').FromNode, requests: any[], isOpen: boolean, fail: (error: Error) => void }[]} */
  const dialled = []
  /** @type {string[]} */
  const events = []
  /** Whether sockets have room for a request. */
  let hasRoom = true
  const link = createLink({
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
        request: part => {
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
      held: () => undefined,
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
    answer: () => last().from.message({ type: 'beat', link: last().id, reached: 0, answered: 0 }, 100),
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
      last().from.damaged(new Error('of another version'))
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
  last().from.damaged(new Error('of another version'))
  for (let second = 0; second < 5; second++) {
    pass(1)
    last().from.damaged(new Error('of another version'))
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
  const { events, dialled, last, answer, pass } = setup()
  answer()
  last().from.message({ type: 'bye', link: last().id }, 100)
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
