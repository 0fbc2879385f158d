import { randomBytes } from 'node:crypto'
import { BEAT_MS, createContainment, SILENT_MS } from '@keycast/service'
import { encodeMessage } from '../wire/envelope.ts'
import { valuesCodec } from '../wire/values-codec.ts'
import { createLink } from './link.ts'
import { UNHEARD_BYTES_MAX } from './unheard-requests.ts'

const turn = () => new Promise(setImmediate)

/** A link whose sockets, clock and node are the test's. */
function setup(given?: any) {
  let at = 0
  let tick = () => {}
  type Fail = (error: Error) => void
  const dialled: {
    id: string
    from: (parts: Buffer[]) => void
    requests: any[]
    isOpen: boolean
    fail: Fail
    timeOut: () => void
  }[] = []
  const events: string[] = []
  const logged: string[] = []
  const note = (fields: unknown, text: string) => {
    expect(fields).toMatchObject({ node: 'n1' })
    logged.push(text)
  }
  const log: any = {
    debug() {},
    info: (fields: unknown) => expect(fields).toMatchObject({ node: 'n1' }),
    warn: note,
    error: note,
  }
  /** The time it takes to look up the gateway's position in a key. */
  let positionMs = 0
  /** Whether sockets have room for a request. */
  let hasRoom = true
  const link = createLink({
    codec: valuesCodec,
    node: 'n1',
    dial: from => {
      const pair = {
        id: '',
        from,
        requests: [] as any[],
        isOpen: true,
        fail: (_: Error) => {},
        timeOut: () => {},
      }
      dialled.push(pair)
      return {
        request: ([part]) => {
          if (hasRoom) {
            pair.requests.push(JSON.parse(part.toString()))
            return Promise.resolve(true)
          }
          return new Promise((resolve, reject) => {
            pair.fail = reject
            pair.timeOut = () => resolve(false)
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
      position() {
        at += positionMs
        return undefined
      },
      onAnswer: answer => events.push(`answer ${answer.key}`),
      onAlive: () => events.push('alive'),
      onDead: () => events.push('dead'),
    },
    randomBytes,
    turn: run => void setImmediate(run),
    now: () => at,
    every: (_, run) => {
      tick = run
      return () => {
        tick = () => {}
      }
    },
    log,
    ...given,
  })
  link.start()
  const last = () => dialled[dialled.length - 1]
  /** The node sends something. */
  const say = (message: object) => last().from([encodeMessage({ link: last().id, ...message })])
  return {
    link,
    dialled,
    events,
    last,
    setPositionMs: (ms: number) => {
      positionMs = ms
    },
    setRoom: (room: boolean) => {
      hasRoom = room
    },
    /** The node answers a beat. */
    answer: (reached = 0) => say({ type: 'beat', wire: valuesCodec.wire, reached, answered: 0 }),
    say,
    logged,
    pass(beats: number) {
      for (let beat = 0; beat < beats; beat++) {
        at += BEAT_MS
        tick()
      }
    },
    /** The gateway's process stands still, and its beat comes late. */
    stall(ms: number) {
      at += BEAT_MS + ms
      tick()
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
  for (let second = 0; second < 4; second++) {
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

test('a gateway that stands still for a minute holds nothing against the node', async () => {
  const { link, events, answer, pass, stall } = setup()
  answer()
  link.watch('a:1')
  await turn()
  pass(1)
  answer() // the node has not come round to the request
  stall(60_000)
  expect(events).toEqual(['alive'])
  answer(1)
  pass(2)
  expect(events).toEqual(['alive'])
})

test.each([
  ['is silent', 5, () => {}],
  ['beats and hears no requests', 12, (answer: () => void) => answer()],
])('a gateway that stands still again and again notices a node that %s', async (_, stallsMax, onStall) => {
  const { link, events, answer, stall } = setup()
  answer()
  link.watch('a:1')
  await turn()
  for (let stalls = 0; stalls < stallsMax && events.length < 2; stalls++) {
    stall(700)
    onStall(answer)
  }
  expect(events).toEqual(['alive', 'dead'])
})

test('a node of another major wire version is not used and not dialled again, and its log says so once a minute', () => {
  const { events, dialled, last, say, answer, pass, logged, link } = setup()
  answer()
  link.watch('a:1')
  for (let second = 0; second < 90; second++) {
    pass(1)
    say({ type: 'beat', wire: 'values/3.0', reached: 0, answered: 0, somethingNew: true })
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
  const beat = { type: 'beat', wire: 'values/2.0', reached: 0, answered: 0 }
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

test('a node whose socket for requests is blocked dies within 5 s for all its beats; an idle one does not', async () => {
  const { link, events, answer, pass, setRoom, last } = setup()
  setRoom(false)
  for (let second = 0; second < 30; second++) {
    answer()
    await turn()
    pass(1)
  }
  expect(events).toEqual(['alive'])

  link.watch('a:1')
  for (let second = 0; second < 5; second++) {
    answer()
    await turn()
    last().timeOut()
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

test('a socket without room is waited for while the node hears something now and then', async () => {
  const { link, events, dialled, answer, pass, setRoom, last } = setup()
  for (let i = 0; i < 2_000; i++) link.watch(`a:${i}`)
  answer()
  await turn()
  expect(last().requests).toHaveLength(10)

  setRoom(false)
  link.watch('b:1')
  for (let second = 0; second < 8; second++) {
    await turn()
    last().timeOut()
    pass(1)
    answer(Math.floor(second / 2))
  }
  expect(dialled).toHaveLength(1)
  expect(events).toEqual(['alive'])

  setRoom(true)
  last().timeOut()
  await turn()
  expect(last().requests.at(-1)).toMatchObject({ number: 11, wants: [{ key: 'b:1' }] })
})

test('a node that hears requests late and says nothing is missing is busy: it has 9 s', async () => {
  const { link, events, answer, pass } = setup()
  answer()
  link.watch('a:1')
  await turn()
  for (let second = 0; second < 9; second++) {
    pass(1)
    answer()
  }
  expect(events).toEqual(['alive'])
  pass(1)
  expect(events).toEqual(['alive', 'dead'])
})

test('a node that lacks requests again and again dies within 5 s', async () => {
  const { link, events, answer, say, pass } = setup()
  answer()
  link.watch('a:1')
  for (let second = 1; second <= 5; second++) {
    await turn()
    pass(1)
    if (second % 2 === 1) answer()
    else {
      say({ type: 'resync' })
      pass(1)
      answer()
    }
  }
  expect(events.slice(0, 2)).toEqual(['alive', 'dead'])
})

test('a node that was started anew and asks for everything is not given up', async () => {
  const { link, events, answer, say, pass } = setup()
  answer()
  link.watch('a:1')
  await turn()
  answer(1)
  pass(2)
  say({ type: 'resync' })
  pass(1)
  answer()
  expect(events).toEqual(['alive'])
})

test('a node none of whose answers can be read dies, and lives again when it has answered', async () => {
  const { link, events, last, answer, say, pass } = setup()
  link.watch('a:1')
  for (let second = 0; second < 30; second++) {
    answer()
    await turn()
    if (last().requests.length > 0)
      say({ type: 'answers', number: 1, reached: 1, answers: [{ type: 'value' }], parts: [0] })
    pass(1)
    if (second === 3) {
      expect(events).toEqual(['alive', 'dead'])
      link.unwatch('a:1') // as the router does: another node owns the key now
    }
  }
  expect(events).toEqual(['alive', 'dead'])

  answer()
  await turn()
  expect(last().requests.at(-1)).toMatchObject({ type: 'get', wants: [{ key: 'a:1' }] })
  say({
    type: 'answers',
    number: 1,
    reached: 1,
    answers: [{ type: 'failed', key: 'a:1', code: 'not_found', message: '', ageMs: 0 }],
    parts: [0],
  })
  say({ type: 'beat', wire: valuesCodec.wire, reached: 1, answered: 1 })
  expect(events).toEqual(['alive', 'dead', 'alive'])
})

test('a node some of whose answers can be read goes on', async () => {
  const { link, events, last, answer, say, pass } = setup()
  link.watch('a:1')
  for (let second = 0; second < 10; second++) {
    answer()
    await turn()
    answer(1)
    say({ type: 'answers', number: 1, reached: 1, answers: [], parts: [] })
    last().from([Buffer.from('{')])
    pass(1)
  }
  expect(events).toEqual(['alive'])
})

test('100,000 wants are said again over many turns, and what changes meanwhile goes first', async () => {
  const { link, answer, say, pass, last, setPositionMs } = setup()
  const keys = Array.from({ length: 100_000 }, (_, i) => `a:${i}`)
  for (const key of keys) link.watch(key)
  answer()
  say({ type: 'resync' })
  pass(1)
  setPositionMs(0.05)
  answer()
  await turn()
  const first = last().requests.length
  expect(first).toBeGreaterThan(0)
  expect(first).toBeLessThan(3)

  link.watch('new')
  link.unwatch('a:0')
  link.unwatch('a:99999')
  await turn()
  const [unwatch, watch] = last().requests.slice(first)
  expect(unwatch).toMatchObject({ type: 'unwatch', keys: ['a:99999'] })
  expect(watch.wants[0]).toEqual({ key: 'new' })
  for (let before = 0; before < last().requests.length; ) {
    before = last().requests.length
    await turn()
    expect(last().requests.length - before).toBeLessThan(3)
  }
  const said = last().requests.flatMap(({ wants = [] }) => wants.map((want: any) => want.key))
  expect(said.sort()).toEqual(['new', ...keys.slice(1)].sort())
})

test('a node is told no more than it may have unheard: the rest as it reads, and new wants before that', async () => {
  const { link, answer, say, pass, last } = setup()
  const wide = 'k'.repeat(200)
  for (let i = 0; i < 50_000; i++) link.watch(`a:${wide}${i}`)
  answer()
  say({ type: 'resync' })
  pass(1)
  answer()
  for (let before = -1; before < last().requests.length; ) {
    before = last().requests.length
    await turn()
  }
  const { requests } = last()
  const unheard = requests.length
  const bytes = () => requests.reduce((sum, request) => sum + Buffer.byteLength(JSON.stringify(request)), 0)
  expect(bytes()).toBeGreaterThanOrEqual(UNHEARD_BYTES_MAX)
  expect(bytes()).toBeLessThan(UNHEARD_BYTES_MAX * 1.1)

  link.watch('new')
  await turn()
  expect(requests).toHaveLength(unheard)
  answer(1)
  await turn()
  expect(requests[unheard].wants[0].key).toBe('new')
})

test('commands that many clients give in one turn go in one request', async () => {
  const { link, last, answer } = setup()
  answer()
  await turn()
  for (const id of ['c1', 'c2', 'c3']) {
    const key = `a:${id}`
    link.command(id, { key, command: { type: 'authorize', key }, deadlineMs: 1_000 }, () => {})
    await undefined // another client's message
  }
  expect(last().requests).toEqual([])
  await turn()
  await turn()
  expect(last().requests.map(({ commands }) => commands.map(({ id }: any) => id))).toEqual([['c1', 'c2', 'c3']])
})

test('while two requests with commands are under way others wait for the first, 2 ms at most, and leave together', async () => {
  let pauseOver = () => {}
  const { link, last, answer, say } = setup({
    after(ms: number, run: () => void) {
      expect(ms).toBe(2)
      pauseOver = run
      return () => {}
    },
  })
  answer()
  const give = async (id: string) => {
    const key = `conversation:${id} ann`
    link.command(id, { key, command: { type: 'authorize', key }, deadlineMs: 1_000 }, () => {})
    await turn()
    await turn()
  }
  let number = 0
  const end = async (...ids: string[]) => {
    const results = ids.map(id => ({ id, result: { verdict: 'admitted', ageMs: 1 } }))
    number++
    say({ type: 'answers', number, reached: number, answers: [], parts: [], results })
    await turn()
    await turn()
  }
  const said = () => last().requests.map(({ commands }) => commands.map(({ id }: any) => id).join())

  await give('1')
  await give('2')
  await give('3')
  await give('4')
  expect(said()).toEqual(['1', '2'])
  pauseOver()
  await turn()
  await turn()
  expect(said()).toEqual(['1', '2', '3,4'])

  await give('5')
  await give('6')
  await end('1')
  expect(said()).toEqual(['1', '2', '3,4'])
  await end('2')
  expect(said()).toEqual(['1', '2', '3,4', '5,6'])

  await end('3', '4', '5', '6')
  await give('7')
  expect(said()).toEqual(['1', '2', '3,4', '5,6', '7'])
})

describe('an error that no code foresaw', () => {
  const bug = () => {
    throw new TypeError('a bug')
  }
  const answer = {
    type: 'answers',
    number: 1,
    reached: 1,
    parts: [0],
    answers: [{ type: 'kept', key: 'a:1', version: 'v' }],
  }

  /** Two links, of which the first is the offender. */
  function withBystander(fault: object) {
    const restarts: string[] = []
    const containment = createContainment({ now: () => 0, ends: ['link'], log: { error() {} } as any })
    containment.onRestart(why => restarts.push(why))
    const offender = setup({ containment, ...fault })
    const bystander = setup({ containment })
    for (const { link, answer: beat, pass } of [offender, bystander]) {
      beat()
      link.watch('a:1')
      pass(1)
      beat()
    }
    return { offender, bystander, containment, restarts }
  }

  test('while a message is read starts its link anew, and no other', async () => {
    const { offender, bystander, containment, restarts } = withBystander({
      codec: { ...valuesCodec, decodeAnswer: bug },
    })
    await turn()
    for (const { say } of [offender, bystander]) say(answer)
    offender.pass(1)
    expect(offender.dialled).toHaveLength(2)
    expect(bystander.dialled).toHaveLength(1)
    expect(bystander.events).toContain('answer a:1')
    expect(containment.counts).toEqual({ link: 1, process: 0 })
    expect(restarts).toEqual([])
  })

  test('while an answer is applied starts its link anew, and the process, for the answer was for all', async () => {
    const { offender, bystander, containment, restarts } = withBystander({
      events: { position: () => undefined, onAnswer: bug, onAlive() {}, onDead() {} },
    })
    await turn()
    for (const { say } of [offender, bystander]) say(answer)
    offender.pass(1)
    expect(offender.dialled).toHaveLength(2)
    expect(bystander.events).toContain('answer a:1')
    expect(containment.counts).toEqual({ link: 1, process: 0 })
    expect(restarts).toEqual([expect.stringContaining('half changed')])
  })
})
