import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { childrenOf, readTree } from './proc.ts'

test('a process is watched with those it started', async () => {
  const child = spawn('cat')
  child.stdin.write('it runs')
  // Until then it may have loaded nothing of its program.
  await once(child.stdout, 'data')
  try {
    const pid = child.pid as number
    const alone = readTree(pid)

    expect(childrenOf(process.pid)).toContain(pid)
    expect(alone?.anonymousBytes).toBeLessThan(alone?.residentBytes ?? 0)
    expect(readTree(process.pid)?.residentBytes).toBeGreaterThan(alone?.residentBytes ?? Number.POSITIVE_INFINITY)
  } finally {
    child.kill('SIGKILL')
  }
})
