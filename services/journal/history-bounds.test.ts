import { createHistoryBounds } from './history-bounds.ts'

const HOUR_MS = 3_600_000
const long = { messages: 1_000, ageMs: 9_000, bytes: 1e6 }
const short = { ...long, messages: 10 }

/** A log's notes, and journals that come to it. */
function setup() {
  const clock = { at: 1_700_000_000_000 }
  let text = ''
  const notes = {
    read: async () => ({ text, at: clock.at }),
    async replace(before: string, after: string) {
      if (before !== text) return false
      text = after
      return true
    },
  }
  function journal(
    history: typeof long,
    { shortenMs = HOUR_MS, notes: ofLog = notes }: { shortenMs?: number; notes?: typeof notes } = {},
  ) {
    const said: any[] = []
    const namespaces = {
      names: ['room'],
      get: (name: string) => ({ room: { history }, 'keycast-own': { history: short } })[name],
    } as any
    const note = (fields: any, text: string) => said.push({ text, ...fields })
    const report = { warn: note, info: note } as any
    const bounds = createHistoryBounds({ namespaces, notes: ofLog, shortenMs, report })
    return { bounds, said, held: () => bounds.retentionOf('room:1')?.messages }
  }
  return { clock, notes, journal }
}

test('a new log keeps what keycast.yaml says, and so does one that notes nothing', async () => {
  const { journal } = setup()
  const one = journal(short)
  await one.bounds.settle()
  expect(one.held()).toBe(10)
  expect(one.bounds.retentionOf('keycast-own:1')).toEqual(short)
  expect(one.bounds.retentionOf('other:1')).toBeUndefined()
  const other = journal(long, { notes: null as any })
  await other.bounds.settle()
  expect(other.held()).toBe(1_000)
})

test('a longer history holds at once, a shorter one after its time, and each says so once', async () => {
  const { clock, journal } = setup()
  await journal(short).bounds.settle()
  await journal(long).bounds.settle()
  const restarted = journal(short)
  for (let n = 0; n < 10; n++) {
    await restarted.bounds.settle()
    expect(restarted.held()).toBe(1_000)
    expect(restarted.bounds.stats()).toEqual({ shortening: 1 })
    clock.at += HOUR_MS / 10
  }
  const { retentionOf } = restarted.bounds
  await restarted.bounds.settle()
  expect(restarted.held()).toBe(10)
  expect(restarted.bounds.retentionOf).not.toBe(retentionOf)
  expect(restarted.bounds.stats()).toEqual({ shortening: 0 })
  expect(restarted.said).toEqual([
    {
      text: expect.stringMatching('^keycast.yaml keeps less than this log was used with'),
      namespace: 'room',
      inForce: long,
      wanted: short,
      from: new Date(1_700_000_000_000 + HOUR_MS).toISOString(),
    },
    { text: 'the shorter history is in force', namespace: 'room', history: short },
  ])
})

test('a journal with an old file never shortens what another one keeps, and does when the other has gone', async () => {
  const { clock, journal } = setup()
  const [right, old] = [journal(long), journal(short)]
  const { retentionOf } = old.bounds
  await old.bounds.settle()
  await right.bounds.settle()
  await old.bounds.settle()
  const walked = old.bounds.retentionOf
  expect(walked).not.toBe(retentionOf)
  for (let n = 0; n < 100; n++) {
    clock.at += HOUR_MS / 10
    await old.bounds.settle()
    await right.bounds.settle()
    expect([right.held(), old.held()]).toEqual([1_000, 1_000])
  }
  // Else the log would walk over its rooms without end.
  expect(old.bounds.retentionOf).toBe(walked)
  expect(old.said).toHaveLength(1)

  await old.bounds.settle()
  clock.at += HOUR_MS
  await old.bounds.settle()
  expect(old.held()).toBe(10)
})

test('what is longer of a history holds at once, while the rest of it waits', async () => {
  const { clock, journal } = setup()
  await journal(long).bounds.settle()
  const mixed = journal({ ...short, ageMs: 20_000 })
  await mixed.bounds.settle()
  expect(mixed.bounds.retentionOf('room:1')).toMatchObject({ ...long, ageMs: 20_000 })
  clock.at += HOUR_MS
  await mixed.bounds.settle()
  expect(mixed.bounds.retentionOf('room:1')).toEqual({ ...short, ageMs: 20_000 })
})

test('with no time to wait a shorter history holds at once', async () => {
  const { journal } = setup()
  await journal(long).bounds.settle()
  const now = journal(short, { shortenMs: 0 })
  await now.bounds.settle()
  expect(now.held()).toBe(10)
})

test('of two journals that note at one time, the one that came too late looks again', async () => {
  const { notes, journal } = setup()
  let isFirst = true
  const other = journal(long)
  const overtaken = journal(short, {
    notes: {
      ...notes,
      async replace(before, after) {
        if (isFirst) await other.bounds.settle()
        isFirst = false
        return notes.replace(before, after)
      },
    },
  })
  await overtaken.bounds.settle()
  expect(overtaken.held()).toBe(1_000)
})

test('a namespace may have a name that every object has a field of', async () => {
  const { notes } = setup()
  const namespaces = { names: ['constructor'], get: () => ({ history: short }) } as any
  const bounds = createHistoryBounds({ namespaces, notes, shortenMs: HOUR_MS, report: {} as any })
  await bounds.settle()
  expect(bounds.retentionOf('constructor:1')).toEqual(short)
})
