// Ends processes for good: asked first, then killed.
import { setTimeout as delay } from 'node:timers/promises'
import { marked } from './pm2-home.js'

const LOOK_AGAIN_MS = 50

/**
 * Ends whatever of a folder's system still runs, its pm2 daemon included.
 *
 * @param {string} home
 * @param {{ patienceMs: number }} options `patienceMs`: how long they may take to end by themselves
 */
export async function endMarked(home, { patienceMs }) {
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGKILL'])) {
    for (const pid of marked(home)) signalTo(pid, signal)
    const deadlineMs = performance.now() + patienceMs
    while (marked(home).length > 0 && performance.now() < deadlineMs) await delay(LOOK_AGAIN_MS)
  }
}

/** @param {number} pid @param {NodeJS.Signals} signal */
function signalTo(pid, signal) {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error
  }
}
