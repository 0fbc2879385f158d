import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createCommands } from './commands.ts'

const fresh = { wasSaid: false, isRepeated: false }

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')

function setup() {
  let at = 0
  let number = 0
  const commands = createCommands({ now: () => at })
  const ends: string[] = []
  return {
    ...commands,
    takeOver: commands.add,
    ends,
    add(id: string, parts: Buffer[] = [], isOnce?: boolean) {
      const done = ({ type, result = '' }: any) => ends.push(`${id} ${type} ${result}`.trim())
      commands.add({ id, key: `room:${id}`, encoded: { head: {}, parts }, deadlineAt: 1_000, isOnce, ...fresh, done })
    },
    said: () =>
      [...commands.nextRequests(() => ++number)].map(({ saying }) => saying.commands.map(({ id }) => id).join()),
    /** What the next request says of the time left of each command. */
    left: () =>
      [...commands.nextRequests(() => ++number)].flatMap(({ saying }) => saying.commands.map(each => each.leftMs)),
    pass(ms: number) {
      at += ms
      commands.expire()
    },
  }
}

test('commands are said in order, once, and are over with their results', () => {
  const { add, said, end, ends } = setup()
  for (const id of ['c1', 'c2', 'c3']) add(id)
  expect(said()).toEqual(['c1,c2,c3'])
  add('c4')
  expect(said()).toEqual(['c4'])
  expect(said()).toEqual([])

  end('c2', { type: 'result', result: 'two' })
  end('c2', { type: 'result', result: 'again' })
  end('c1', { type: 'refused' })
  expect(ends).toEqual(['c2 result two', 'c1 refused'])
})

test('one that is to be said once is not said again after a loss, nor given up before its deadline', () => {
  const { add, said, end, ends, startAnew, take, stop, pass } = setup()
  add('c1', [], true)
  add('c2')
  expect(said()).toEqual(['c1,c2'])
  add('c3', [], true)
  startAnew()
  expect(said()).toEqual(['c2,c3'])
  add('c4', [], true)
  expect(said()).toEqual(['c4'])
  expect(take(() => true).map(({ id }) => id)).toEqual(['c2'])
  expect(ends).toEqual([])
  // Another node has its key by now.
  end('c4', { type: 'result', result: 'late' })
  expect(ends).toEqual(['c4 unknown'])
  stop()
  expect(ends).toEqual(['c4 unknown'])
  pass(1_000)
  expect(ends).toEqual(['c4 unknown', 'c1 unknown', 'c3 unknown'])
})

test('after a loss the commands without a result are said again, in the order they were given', () => {
  const { add, said, end, startAnew } = setup()
  for (const id of ['c1', 'c2', 'c3']) add(id)
  said()
  end('c2', { type: 'result', result: 'two' })
  startAnew()
  add('c4')
  expect(said()).toEqual(['c1,c3,c4'])
})

test('one whose deadline passes ends as unknown where the node may have heard it, else as unsaid', () => {
  const { add, said, pass, ends, isAllSaid, startAnew } = setup()
  add('c1')
  said()
  startAnew()
  add('c2')
  pass(1_000)
  expect(ends).toEqual(['c1 unknown', 'c2 unsaid'])
  expect(isAllSaid()).toBe(true)
  expect(said()).toEqual([])
})

test('a request holds so many bytes and commands; the rest goes in the next', () => {
  const { add, said } = setup()
  for (const id of ['c1', 'c2', 'c3']) add(id, [Buffer.alloc(100_000)])
  expect([said(), said(), said()]).toEqual([['c1,c2'], ['c3'], []])
  for (const id of ['l1', 'l2']) add(id, [Buffer.alloc(1_000_000)])
  expect([said(), said(), said()]).toEqual([['l1'], ['l2'], []])
  for (let i = 0; i < 250; i++) add(`d${i}`)
  expect([said(), said()].map(([ids]) => ids.split(',').length)).toEqual([200, 50])
})

test('an id under way is not given twice', () => {
  const { add } = setup()
  add('c1')
  expect(() => add('c1')).toThrow('c1')
})

test('those of some keys are given away in their order, and one that was said stays so', () => {
  const { add, said, take, pass, ends } = setup()
  for (const id of ['c1', 'c2', 'c3']) add(id)
  said()
  add('c4')
  const taken = take(key => key !== 'room:c2')
  expect(taken.map(({ id, wasSaid }) => `${id} ${wasSaid}`)).toEqual(['c1 true', 'c3 true', 'c4 false'])
  pass(1_000)
  expect(ends).toEqual(['c2 unknown'])

  const other = setup()
  for (const command of taken) other.takeOver(command)
  other.add('c5')
  expect(other.said()).toEqual(['c1,c3,c4,c5'])
})

test('each time a command is said, it says how much of its time is left', () => {
  const { add, left, pass, startAnew } = setup()
  add('c1')
  pass(300.5)
  expect(left()).toEqual([700])
  pass(600)
  startAnew()
  expect(left()).toEqual([100])
})

test('a link that is always behind keeps what it has still to send, and not what it sent', async () => {
  const { add, end, nextRequests, isAllSaid } = createCommandsOf()
  const sent: WeakRef<Buffer>[] = []
  for (let round = 0; round < 200; round++) {
    // 26 of these fit into a request: so one more each round is still to be sent.
    for (let each = 0; each < 27; each++) add(`${round} ${each}`, Buffer.alloc(10_000))
    for (const { saying } of nextRequests(() => round)) {
      for (const { id, encoded } of saying.commands) {
        sent.push(new WeakRef(encoded.parts[0]))
        end(id, { type: 'result', result: 'kept' })
      }
    }
  }
  await new Promise(resolve => setImmediate(resolve))
  gc()
  const kept = sent.filter(each => each.deref() !== undefined).length
  expect(sent.length).toBe(200 * 26)
  // As many as are still to be sent, at most.
  expect(kept).toBeLessThanOrEqual(200)
  expect(isAllSaid()).toBe(false)
})

/** Commands that nothing else refers to. */
function createCommandsOf() {
  const { add, end, nextRequests, isAllSaid } = createCommands({ now: () => 0 })
  return {
    isAllSaid,
    end,
    nextRequests,
    add: (id: string, part: Buffer) =>
      add({ id, key: 'room:1', encoded: { head: {}, parts: [part] }, deadlineAt: 1_000, ...fresh, done() {} }),
  }
}
