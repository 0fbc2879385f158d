// The same with two journals on a Valkey, which is killed, too.
import { atEnd } from '../support/cleanup.ts'
import { pause } from '../support/deadline.ts'
import { startFaultRun } from '../support/fault-run.ts'
import { seconds, timeoutMs } from '../support/random-faults.ts'
import { startValkey } from '../support/valkey.ts'

test(
  `through ${seconds} s of kills, stops and cuts, every message is kept once and seen by everybody in one order`,
  async () => {
    const valkey = await startValkey()
    atEnd(() => valkey.remove())
    const env = { JOURNAL_LOG: 'valkey', VALKEY_URL: valkey.url }
    const run = await startFaultRun({
      journals: [env, env],
      more: () => [
        [
          'Valkey killed',
          async random => {
            await valkey.kill()
            await pause(random.integer(1_000))
            await valkey.restart()
          },
        ],
        [
          'Valkey stopped',
          async random => {
            valkey.signal('SIGSTOP')
            await pause(200 + random.integer(5_000))
            valkey.signal('SIGCONT')
          },
        ],
      ],
    })
    expect(await run.judge()).toEqual([])
  },
  timeoutMs,
)
