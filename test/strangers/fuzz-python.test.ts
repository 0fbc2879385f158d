// Absurd messages to the client in Python. An hour of it, with a seed that is printed:
// FUZZ_SECONDS=3600 npm run test:e2e -- --testPathPatterns fuzz
import { show } from '../support/figures.ts'
import { seconds, seed, timeoutMs } from '../support/fuzz/length.ts'
import { python } from '../support/python.ts'

test(
  'the client in Python: after an absurd message it goes on with the next gateway',
  async () => {
    const env = { FUZZ_SECONDS: String(seconds), FUZZ_SEED: String(seed) }
    const output = await python(['pytest', 'fuzz_tests', '-s', '--show-capture=no'], env, timeoutMs)
    const [figures = ''] = /the client in Python: .*/.exec(output) ?? []
    expect(figures).toContain('absurd inputs')
    show(figures)
  },
  timeoutMs,
)
