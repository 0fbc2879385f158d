import { realWorld } from '@keycast/service'
import { createCommitter } from './group-commit.ts'
import { LogBroken } from './log/log.ts'

/** A log whose appends end when the test says so. */
function setup() {
  const appends: { batch: any[]; end: (error?: Error) => void }[] = []
  const told: any[] = []
  let seq = 0
  const clock = { at: 0 }
  const committer = createCommitter({
    ...realWorld,
    log: {
      append: batch =>
        new Promise((resolve, reject) => {
          const outcomes = batch.map(() => ({ position: { epoch: 'E', seq: ++seq }, at: 0, duplicate: false }))
          appends.push({ batch, end: error => (error ? reject(error) : resolve(outcomes)) })
        }),
    },
    onKept: ({ data }) => told.push(`kept ${data}`),
    onFailed: ({ message }) => told.push(message),
    onBroken: ({ message }) => told.push(`broken: ${message}`),
    onLate: count => told.push(`${count} late`),
    counts: { acknowledged() {}, flushed() {} },
    now: () => clock.at,
  })
  const publish = (text: string, bytes = 1, deadlineAt = 1_000, payer?: string) =>
    committer.publish(
      { data: Object.assign(Buffer.alloc(bytes), { toString: () => text }), payer } as any,
      deadlineAt,
      outcome => told.push(`done ${text} ${outcome.error ?? ''}`.trim()),
    )
  /** A batch begins at the end of a turn. */
  const settle = async () => {
    for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
  }
  return { appends, told, clock, committer, publish, settle }
}

test('what comes while a batch is under way is the next one', async () => {
  const { appends, publish, settle } = setup()
  publish('a')
  publish('b')
  await settle()
  publish('c')
  publish('d')
  await settle()
  expect(appends.map(({ batch }) => batch.length)).toEqual([2])
  appends[0].end()
  await settle()
  expect(appends.map(({ batch }) => batch.length)).toEqual([2, 2])
})

test('all of a batch is told to watchers before the first is acknowledged', async () => {
  const { appends, told, publish, settle } = setup()
  publish('a')
  publish('b')
  await settle()
  expect(told).toEqual([])
  appends[0].end()
  await settle()
  expect(told).toEqual(['kept a', 'kept b', 'done a', 'done b'])
})

test('a batch has a number and a size of its own, and what waits has bounds', async () => {
  const { appends, committer, publish, settle } = setup()
  for (let n = 0; n < 5_000; n++) publish('a')
  for (let n = 0; n < 20; n++) publish('b', 2 ** 20)
  for (const size of [2_000, 2_000, 1_004, 4, 4, 4, 4]) {
    await settle()
    expect(appends.at(-1)?.batch).toHaveLength(size)
    appends.at(-1)?.end()
  }
  await settle()
  let taken = 0
  while (publish('c', 2 ** 20) === undefined) taken++
  expect(taken).toBe(64)
  expect(committer.stats().waitingBytes).toBe(64 * 2 ** 20)
})

test('where the log cannot say what it kept, publishers are told so, and the next batch goes on', async () => {
  const { appends, told, publish, settle } = setup()
  publish('a')
  await settle()
  appends[0].end(new Error('no answer'))
  publish('b')
  await settle()
  appends[1].end()
  await settle()
  expect(told).toEqual(['no answer', 'done a publish_unknown', 'kept b', 'done b'])
})

test('where the log is broken nobody is answered, and nothing begins any more', async () => {
  const { appends, told, committer, publish, settle } = setup()
  publish('a')
  await settle()
  publish('b')
  committer.between(async () => void told.push('task'))
  appends[0].end(new LogBroken('the disk'))
  await settle()
  publish('c')
  await settle()
  expect(told).toEqual(['broken: the disk'])
  expect(appends).toHaveLength(1)
})

test('a task that finds the log broken ends all as well', async () => {
  const { appends, told, committer, publish, settle } = setup()
  committer.between(async () => {
    throw new LogBroken('the disk')
  })
  await settle()
  publish('a')
  await settle()
  expect(told).toEqual(['broken: the disk'])
  expect(appends).toEqual([])
})

test('what else needs the log waits for the batch, and the next batch for it', async () => {
  const { appends, told, committer, publish, settle } = setup()
  publish('a')
  await settle()
  committer.between(async () => void told.push('task'))
  publish('b')
  await settle()
  expect(told).toEqual([])
  appends[0].end()
  await settle()
  expect(told).toEqual(['kept a', 'done a', 'task'])
  expect(appends).toHaveLength(2)
})

test('stopping takes no more, and waits for what was taken', async () => {
  const { appends, told, committer, publish, settle } = setup()
  publish('a')
  await settle()
  publish('b')
  const stopped = committer.stop().then(() => told.push('stopped'))
  expect(publish('c')).toBe('journal_unavailable')
  appends[0].end()
  await settle()
  appends[1].end()
  await stopped
  expect(told).toEqual(['kept a', 'done a', 'kept b', 'done b', 'stopped'])
})

test('a publish whose deadline passed while it waited is refused, and the others are kept', async () => {
  const { appends, told, clock, publish, settle } = setup()
  publish('first')
  await settle()
  publish('late', 1, 500)
  publish('in time', 1, 501)
  clock.at = 500
  appends[0].end()
  await settle()
  appends[1].end()
  await settle()
  publish('late, too', 1, -3_000)
  await settle()
  expect(appends).toHaveLength(2)
  expect(told).toEqual([
    ...['kept first', 'done first'],
    ...['1 late', 'done late journal_unavailable'],
    ...['kept in time', 'done in time'],
    ...['1 late', 'done late, too journal_unavailable'],
  ])
})

test('publishers take turns: 3,000 publishes of one keep no other waiting for the second batch', async () => {
  const { appends, publish, settle } = setup()
  publish('first')
  await settle()
  for (let n = 0; n < 3_000; n++) publish(`many ${n}`, 1, 1_000, 'a1.u1')
  publish('other', 1, 1_000, 'a2.u2')
  appends[0].end()
  await settle()
  expect(appends[1].batch).toHaveLength(2_000)
  expect(appends[1].batch.slice(0, 2).map(({ data }) => String(data))).toEqual(['many 0', 'other'])
})

test('of the places for those that wait a publisher has a share, and others find some', async () => {
  const { appends, publish, settle } = setup()
  publish('first')
  await settle()
  const taken = Array.from({ length: 6_000 }, (_, n) => publish(`many ${n}`, 1, 1_000, 'a1.u1'))
  expect(taken.filter(refusal => refusal === undefined).length).toBeCloseTo(50_000 / 9, -2)
  expect(taken.at(-1)).toBe('rate_limited')
  expect([publish('other', 1, 1_000, 'a2.u2'), publish("a backend's")]).toEqual([undefined, undefined])
  appends[0].end()
  await settle()
  expect(publish('again', 1, 1_000, 'a1.u1')).toBeUndefined()
})
