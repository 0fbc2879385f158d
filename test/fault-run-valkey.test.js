// The same with two journals on a Valkey, which is killed, too.
import { atEnd } from './support/cleanup.js'
import { pause } from './support/deadline.js'
import { startFaultRun } from './support/fault-run.js'
import { seconds, timeoutMs } from './support/random-faults.js'
import { startValkey } from './support/valkey.js'

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
