// Runs a service: starts it, says that it is ready, and on a signal stops it in order within a grace period.
import type { createContainment } from './containment.ts'
import type { Log } from './log.ts'
import { Misconfigured } from './misconfigured.ts'

/** The parts of `process` that are used here. */
interface Runtime {
  on: (event: string, listener: (given: unknown) => void) => unknown
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
  /**
   * May have the service stop and exit with 1, as an error that nothing caught does then. Without it such an error ends
   * the process at once.
   */
  containment?: ReturnType<typeof createContainment>
  /**
   * False: where what is shared may be half changed, the process ends at once, without its stop steps. For a service
   * whose last writes could do harm for good.
   */
  drains?: boolean
  /** Names the setting to change if the error's own words do not. */
  whyNot?: (error: unknown) => string | undefined
  /** The process, unless a test says otherwise. */
  runtime?: Runtime
}

/**
 * Runs a service until a signal. SIGTERM comes from docker and systemd, SIGINT from pm2 and a terminal; both stop it,
 * and further ones change nothing. Exit codes: 0 stopped in order; 2 settings or keycast.yaml cannot be used; 1 anything
 * else, a stop after an unforeseen error included, so that a supervisor restarts it. An address that the host does not
 * have counts as 1: with 2, a host that boots before its network is there would stay without the service.
 *
 * @returns once the service is ready, or will not be
 */
export async function runService({
  name,
  log,
  graceMs,
  start,
  stop,
  containment,
  drains = true,
  whyNot = () => undefined,
  runtime = process,
}: Service): Promise<void> {
  let isReady = false
  let stopping = false
  let isFaulty = false

  // Begins a turn later: a signal during `start` must find the handlers below.
  const started = Promise.resolve()
    .then(start)
    .then(
      () => {
        isReady = true
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

  const shutDown = async (why: object) => {
    if (stopping) return log.warn(why, 'already stopping')
    stopping = true
    log.info({ ...why, graceMs }, 'stopping')
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
    runtime.exit(failures === 0 && !isFaulty ? 0 : 1)
  }

  runtime.on('SIGTERM', () => shutDown({ signal: 'SIGTERM' }))
  runtime.on('SIGINT', () => shutDown({ signal: 'SIGINT' }))
  containment?.onRestart((why, isInDoubt) => {
    log.fatal({ why }, 'restarting')
    isFaulty = true
    if (isInDoubt && !drains) return runtime.exit(1)
    shutDown({ why })
  })
  // A programming error leaves the process in an unknown state. It lives on only for as long as its peers need to turn to
  // others, and then the supervisor starts a new one.
  const onUncaught = (what: string, error: unknown) => {
    isFaulty = true
    if (containment && isReady) return containment.fail(error)
    log.fatal({ err: error }, what)
    runtime.exit(1)
  }
  runtime.on('uncaughtException', error => onUncaught('uncaught exception', error))
  runtime.on('unhandledRejection', reason => onUncaught('unhandled rejection', reason))

  await started
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
