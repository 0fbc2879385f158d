// Ends the processes that a run left behind, for good: with SIGTERM first, then with SIGKILL.
import { setTimeout as delay } from 'node:timers/promises'
import { marked } from './pm2-home.ts'

const LOOK_AGAIN_MS = 50

/**
 * Ends whatever of a folder's system still runs, its pm2 daemon included.
 *
 * @param options `patienceMs`: how long the processes may take to end by themselves
 */
export async function endMarked(home: string, { patienceMs }: { patienceMs: number }) {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const deadlineMs = performance.now() + patienceMs
    const signalled = new Set<number>()
    for (;;) {
      const left = marked(home)
      if (left.length === 0) return
      // Those started since the last look, too: a daemon may start a service again before it takes its own signal.
      for (const pid of left.filter(pid => !signalled.has(pid))) {
        signalTo(pid, signal)
        signalled.add(pid)
      }
      if (performance.now() >= deadlineMs) break
      await delay(LOOK_AGAIN_MS)
    }
  }
}

function signalTo(pid: number, signal: NodeJS.Signals) {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
