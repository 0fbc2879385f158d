import { createHeartbeat } from './heartbeat.ts'

function setup({ sessions, slices = 5 }: { sessions: number; slices?: number }) {
  let nowMs = 0
  const all = Array.from(
    { length: sessions },
    (_, id) => ({ id, heard: true, ended: false, transport: { answersPings: true } }) as any,
  )
  const sliced: Set<any>[] = Array.from({ length: slices }, () => new Set())
  for (const session of all) sliced[session.id % slices].add(session)
  const pinged: number[] = []
  const cut: number[] = []
  const heartbeat = createHeartbeat({
    slices: sliced,
    periodMs: 5_000,
    outbox: {
      sendFrame: ({ id }: any) => pinged.push(id),
      isWritable: ({ stalled }: any) => !stalled,
    } as any,
    isUnread: ({ unread }: any) => unread,
    terminate: ({ id }) => {
      cut.push(Number(id))
      sliced[Number(id) % slices].delete(all[Number(id)])
    },
    now: () => nowMs,
    every: () => () => {},
  })
  const tickAfter = (ms: number) => {
    nowMs += ms
    heartbeat.tick()
  }
  return { all, pinged, cut, tickAfter }
}

test('each session is pinged once a period, a slice of them at a time', () => {
  const { all, pinged, tickAfter } = setup({ sessions: 10 })
  tickAfter(1_000)
  expect(pinged).toEqual([0, 5])
  for (let n = 0; n < 4; n++) tickAfter(1_000)
  expect([...pinged].sort((a, b) => a - b)).toEqual(all.map(({ id }) => id))
})

test('a session that is silent from one ping to the next is cut, one that sends anything is not', () => {
  const { all, pinged, cut, tickAfter } = setup({ sessions: 2, slices: 1 })
  tickAfter(5_000)
  all[0].heard = true
  tickAfter(5_000)
  expect(cut).toEqual([1])
  expect(pinged).toEqual([0, 1, 0])
})

test('a gateway that was stopped itself cuts nobody', () => {
  const { cut, tickAfter } = setup({ sessions: 2, slices: 1 })
  tickAfter(5_000)
  tickAfter(60_000)
  expect(cut).toEqual([])
  tickAfter(5_000)
  expect(cut).toEqual([0, 1])
})

test('a session that waits to be read is not cut: it may have answered', () => {
  const { all, pinged, cut, tickAfter } = setup({ sessions: 1, slices: 1 })
  all[0].unread = true
  for (let n = 0; n < 3; n++) tickAfter(5_000)
  expect([pinged, cut]).toEqual([[0, 0, 0], []])
  all[0].unread = false
  tickAfter(5_000)
  expect(cut).toEqual([0])
})

test('a session that does not read, or has ended, is left to others', () => {
  const { all, pinged, cut, tickAfter } = setup({ sessions: 2, slices: 1 })
  all[0].stalled = true
  all[1].ended = true
  for (let n = 0; n < 3; n++) tickAfter(5_000)
  expect(pinged).toEqual([])
  expect(cut).toEqual([])
})

test('a session whose client cannot answer is pinged, and left to TCP', () => {
  const { all, pinged, cut, tickAfter } = setup({ sessions: 1, slices: 1 })
  all[0].transport.answersPings = false
  for (let n = 0; n < 3; n++) tickAfter(5_000)
  expect(pinged).toEqual([0, 0, 0])
  expect(cut).toEqual([])
})
