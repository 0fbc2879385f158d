// Passes a TCP connection on, and what comes back as late as it is told: for a gateway that is behind.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'

/** Unless it grows slowly, whoever waits takes the silence for a death. Of its own time, each time. */
const GROWTH = 1 / 2
const STEP_MS = 100

/** @returns listening on a free port of loopback */
export async function startRelay(targetPort: number) {
  let delayMs = 0
  // Without Nagle's algorithm at either side: a small answer would wait for the acknowledgement of the one before, and add
  // up to 40 ms to the delay that was asked for.
  const server = createServer({ noDelay: true }, near => {
    const far = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
    const late: Buffer[] = []
    let dueMs = 0
    far.on('data', chunk => {
      late.push(chunk)
      const nowMs = performance.now()
      dueMs = Math.max(dueMs, nowMs + delayMs)
      // Each takes the first, so that none overtakes another.
      setTimeout(() => near.write(late.shift() as Buffer), dueMs - nowMs)
    })
    near.pipe(far)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ]) {
      one.on('error', () => {})
      one.once('close', () => other.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()

  return {
    port: (server.address() as AddressInfo).port,

    /** Resolves once all that comes back is late by so much, and nothing by more. */
    async delay(ms: number) {
      const before = delayMs
      while (delayMs < ms) {
        delayMs = Math.min(ms, delayMs + STEP_MS * GROWTH)
        await new Promise(resolve => setTimeout(resolve, STEP_MS))
      }
      delayMs = ms
      await new Promise(resolve => setTimeout(resolve, Math.max(0, before - ms)))
    },
  }
}
