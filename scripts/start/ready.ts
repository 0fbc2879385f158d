// Waits until a service's health endpoint says that it is ready.
import { setTimeout as delay } from 'node:timers/promises'
import { StartError } from './start-error.ts'

const ASK_AGAIN_MS = 25
const ANSWER_TIMEOUT_MS = 2_000

/**
 * @param options `deadlineMs`: for all of it
 * @throws {StartError} with its last answer, when it is not ready in time
 */
export async function untilReady(
  { name, healthUrl }: { name: string; healthUrl: string },
  { deadlineMs, signal }: { deadlineMs: number; signal: AbortSignal },
) {
  const untilMs = performance.now() + deadlineMs
  let last = 'no answer'
  while (performance.now() < untilMs) {
    signal.throwIfAborted()
    try {
      const response = await fetch(healthUrl, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })
      if (response.ok) return
      last = `HTTP ${response.status} ${await response.text()}`
    } catch (error) {
      const { cause, message } = error as Error & { cause?: Error }
      last = cause?.message ?? message
    }
    await delay(ASK_AGAIN_MS, undefined, { signal })
  }
  throw new StartError(`${name} was not ready within ${deadlineMs / 1_000} s (${healthUrl}: ${last})`)
}
