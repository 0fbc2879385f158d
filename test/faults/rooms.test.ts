// Rooms through random faults, with the log on one journal's disk. Ten minutes of it, with a seed that is printed:
// FAULT_RUN_SECONDS=600 npm run test:e2e -- --testPathPatterns faults/rooms
import { startFaultRun } from '../support/fault-run.ts'
import { seconds, timeoutMs } from '../support/random-faults.ts'

test(
  `through ${seconds} s of kills, stops and cuts, every message is kept once and seen by everybody in one order`,
  async () => {
    const run = await startFaultRun({ journals: [{}] })
    expect(await run.judge()).toEqual([])
  },
  timeoutMs,
)
