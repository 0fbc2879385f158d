// Ends the system of an npm start that was killed and could not end it itself: by SIGKILL, or for want of memory.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isMain } from '../../cli/support/command.ts'
import { endMarked } from './end-leftovers.ts'
import { canLook, claimant, inspect, MARK, release } from './pm2-home.ts'

/**
 * Starts a process that waits for the end of this one, and then cleans up where this one did not. It holds the other end
 * of a pipe, which closes with this process however that ends. A shell does the waiting, for it takes 1 MB of memory
 * where Node takes 40.
 */
export function cleanUpAfterKill(home: string, { patienceMs }: { patienceMs: number }) {
  const wait = 'read -r _; exec "$@"'
  const cleanup = [process.execPath, fileURLToPath(import.meta.url), home, String(process.pid), String(patienceMs)]
  const child = spawn('/bin/sh', ['-c', wait, 'sh', ...cleanup], {
    // With the mark, so that what ends a former run ends its cleanup as well: it must not meet the next run's processes.
    env: { ...process.env, [MARK]: home },
    // A session of its own, which neither Ctrl-C nor a closed terminal reaches.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.unref()
}

if (isMain(import.meta.url)) {
  const [home, starter, patienceMs] = process.argv.slice(2)
  // Still claimed, so it did not end in order. Its pid may look alive: until its parent notices, it is a zombie.
  if (claimant(home) === Number(starter)) {
    const { daemon } = inspect(home)
    // Without /proc the daemon is all that is known; it ends what it runs.
    if (daemon && !canLook) process.kill(daemon, 'SIGTERM')
    await endMarked(home, { patienceMs: Number(patienceMs) })
    release(home)
  }
}
