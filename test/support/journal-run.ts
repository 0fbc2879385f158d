// Gateways that publish into rooms of one or more journals and watch them, under whatever faults a test makes, and the
// judgement in the end: all that was sent is kept once, and everybody saw the same.
import { createChecker } from './checker.ts'
import { eventually } from './deadline.ts'
import { startJournal } from './journal.ts'
import { notOnceIn, readHistories, startLoad, startRooms } from './journal-links.ts'

interface Options {
  /** Of a publish. */
  deadlineMs?: number
  rooms?: number
  journals?: Awaited<ReturnType<typeof startJournal>>[]
  /** Of each gateway, as it is set; all journals for two gateways unless said. */
  nodes?: string[]
}

/** @param perSecond publishes of all gateways together */
export async function startRun(
  perSecond: number,
  { deadlineMs = 10_000, rooms: count = 10, journals, nodes }: Options = {},
) {
  const started = journals ?? [await startJournal()]
  const all = started.map(({ node }) => node).join()
  const nodesOfEach = nodes ?? [all, all]
  const rooms = Array.from({ length: count }, (_, n) => `room:${n}`)
  const checker = createChecker()
  const gateways = []
  const loads = []
  for (const [index, nodes] of nodesOfEach.entries()) {
    const name = `gateway-${index + 1}`
    const backbone = await startRooms(name, nodes, checker)
    for (const room of rooms) backbone.watch(room)
    gateways.push(backbone)
    await eventually(() => rooms.every(room => backbone.positionOf(room)), 'every room having a position')
    loads.push(startLoad({ name, backbone, checker, rooms, perSecond: perSecond / nodesOfEach.length, deadlineMs }))
  }
  return { journal: started[0], journals: started, nodes: all, checker, gateways, loads, rooms }
}

/**
 * Stops publishing and judges.
 *
 * @param options `mayBeLost`: acknowledged in an epoch that is over
 */
export async function expectWhole(
  { nodes, checker, gateways, loads, rooms }: Awaited<ReturnType<typeof startRun>>,
  { mayBeLost = () => false }: { mayBeLost?: (sent: { result: any }) => boolean } = {},
): Promise<{ sent: number; lost: number }> {
  const sent = (await Promise.all(loads.map(load => load.stop()))).flat()
  const late = await startRooms('late', nodes, checker)
  const ids = await readHistories(late, checker, rooms)
  const there = new Set(ids)
  const lost = sent.filter(publish => !there.has(publish.messageId) && mayBeLost(publish))
  const isLost = new Set(lost)
  const kept = sent.filter(publish => !isLost.has(publish))
  const wrong = notOnceIn(ids, kept)
  if (wrong.length > 0) {
    // A second reading tells what the log holds from what was read wrongly; the checker names the places.
    const again = notOnceIn(await readHistories(late, createChecker(), rooms), kept)
    expect({ wrong, again, problems: checker.problems().slice(0, 30) }).toEqual({ wrong: [], again: [], problems: [] })
  }

  // One that comes only now and asks for everything.
  const { epoch } = (await late.history(rooms[0], { after: 0, limit: 1 }, { deadlineMs: 10_000 })) as any
  for (const room of rooms) late.watch(room, { epoch, seq: 0 })
  for (const backbone of [...gateways, late]) {
    for (const room of rooms) {
      const { newest } = (await late.history(room, { before: 1, limit: 1 }, { deadlineMs: 10_000 })) as any
      await eventually(() => backbone.positionOf(room)?.seq === newest, `${room} being seen to its end`)
    }
  }
  expect(checker.problems().slice(0, 10)).toEqual([])
  return { sent: sent.length, lost: lost.length }
}
