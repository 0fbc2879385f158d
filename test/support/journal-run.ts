// Gateways that publish into rooms of one or more journals and watch them, under whatever faults a test makes, and the
// judgement in the end: all that was sent is kept once, and everybody saw the same.
import { eventually } from './deadline.ts'
import { createChecker, notOnceIn, readHistories, startJournal, startLoad, startRooms } from './journal.ts'

/**
 * @param {number} perSecond publishes of all gateways together
 * @param {object} [options]
 * @param {number} [options.deadlineMs] of a publish
 * @param {number} [options.rooms]
 * @param {Awaited<ReturnType<typeof startJournal>>[]} [options.journals]
 * @param {string[]} [options.nodes] of each gateway, as it is set; all journals for two gateways unless said
 */
export async function startRun(perSecond, { deadlineMs = 10_000, rooms: count = 10, journals, nodes } = {}) {
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
 * @param {Awaited<ReturnType<typeof startRun>>} run
 * @param {{ mayBeLost?: (sent: { result: any }) => boolean }} [options] `mayBeLost`: acknowledged in an epoch that is over
 * @returns {Promise<{ sent: number, lost: number }>}
 */
export async function expectWhole({ nodes, checker, gateways, loads, rooms }, { mayBeLost = () => false } = {}) {
  const sent = (await Promise.all(loads.map(load => load.stop()))).flat()
  const late = await startRooms('late', nodes, checker)
  const ids = await readHistories(late, checker, rooms)
  const there = new Set(ids)
  const lost = sent.filter(publish => !there.has(publish.messageId) && mayBeLost(publish))
  const isLost = new Set(lost)
  expect(
    notOnceIn(
      ids,
      sent.filter(publish => !isLost.has(publish)),
    ),
  ).toEqual([])

  // One that comes only now and asks for everything.
  const { epoch } = /** @type {any} */ (await late.history(rooms[0], { after: 0, limit: 1 }, { deadlineMs: 10_000 }))
  for (const room of rooms) late.watch(room, { epoch, seq: 0 })
  for (const backbone of [...gateways, late]) {
    for (const room of rooms) {
      const { newest } = /** @type {any} */ (await late.history(room, { before: 1, limit: 1 }, { deadlineMs: 10_000 }))
      await eventually(() => backbone.positionOf(room)?.seq === newest, `${room} being seen to its end`)
    }
  }
  expect(checker.problems().slice(0, 10)).toEqual([])
  return { sent: sent.length, lost: lost.length }
}
