// Runs a service: starts it, says that it is ready, and on a signal stops it in order within a grace period.
import type { Log } from './log.ts'
import { Misconfigured } from './misconfigured.ts'

/** The parts of `process` that are used here. */
interface Runtime {
  on: (event: any, listener: (...args: any[]) => void) => unknown
  exit: (code: number) => void
  send?: ((message: string) => unknown) | undefined
}

interface Service {
  name: string
  log: Log
  /** Time for all stop steps together. */
  graceMs: number
  start: () => Promise<unknown>
  /**
   * Run one after the other; a step that fails does not keep the next from running. They run only after `start` is
   * over.
   */
  stop: [what: string, step: () => unknown][]
  /** Names the setting to change if the error's own words do not. */
  whyNot?: (error: unknown) => string | undefined
  /** The process, unless a test says otherwise. */
  runtime?: Runtime
}

/**
 * Runs a service until a signal. SIGTERM comes from docker and systemd, SIGINT from pm2 and a terminal; both stop it,
 * and further ones change nothing. Exit codes: 0 stopped in order; 2 settings or keycast.yaml cannot be used; 1 anything
 * else, so that a supervisor restarts it. An address that the host does not have counts as 1: with 2, a host that boots
 * before its network is there would stay without the service.
 *
 * @returns once the service is ready, or will not be
 */
export async function runService({
  name,
  log,
  graceMs,
  start,
  stop,
  whyNot = () => undefined,
  runtime = process,
}: Service): Promise<void> {
  let stopping = false

  // Begins a turn later: a signal during `start` must find the handlers below.
  const started = Promise.resolve()
    .then(start)
    .then(
      () => {
        // pm2 counts a service as started once it says so (wait_ready).
        if (!stopping) runtime.send?.('ready')
      },
      error => {
        // Another start would end the same way: with this code pm2 does not try (stop_exit_codes).
        if (error instanceof Misconfigured) {
          log.fatal(error.message)
          return runtime.exit(2)
        }
        log.fatal({ err: error }, `${name} could not start: ${whyNot(error) ?? messageOf(error)}`)
        runtime.exit(1)
      },
    )

  const shutDown = async (signal: string) => {
    if (stopping) return log.warn({ signal }, 'already stopping')
    stopping = true
    log.info({ signal, graceMs }, 'stopping')
    let doing = 'start'
    // Keeps the process open: without it, a step that hangs would end in a silent exit with 0.
    const grace = setTimeout(() => {
      log.error({ step: doing, graceMs }, 'did not stop in time')
      runtime.exit(1)
    }, graceMs)

    await started
    let failures = 0
    for (const [what, step] of stop) {
      doing = what
      try {
        await step()
      } catch (error) {
        failures += 1
        log.error({ err: error, step: what }, 'a stop step failed')
      }
    }
    clearTimeout(grace)
    log.info('stopped')
    runtime.exit(failures === 0 ? 0 : 1)
  }

  runtime.on('SIGTERM', () => shutDown('SIGTERM'))
  runtime.on('SIGINT', () => shutDown('SIGINT'))
  // A programming error leaves the process in an unknown state: exit, and let the supervisor start a new one.
  runtime.on('uncaughtException', error => {
    log.fatal({ err: error }, 'uncaught exception')
    runtime.exit(1)
  })
  runtime.on('unhandledRejection', reason => {
    log.fatal({ err: reason }, 'unhandled rejection')
    runtime.exit(1)
  })

  await started
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
