// Runs a service: starts it, says that it is ready, and on a signal stops it in order within a grace period.
import { Misconfigured } from './misconfigured.ts'

/**
 * @typedef {object} Runtime the parts of `process` that are used here
 * @property {(event: any, listener: (...args: any[]) => void) => unknown} on
 * @property {(code: number) => void} exit
 * @property {((message: string) => unknown) | undefined} [send]
 */

/**
 * Runs a service until a signal. SIGTERM comes from docker and systemd, SIGINT from pm2 and a terminal; both stop it,
 * and further ones change nothing. Exit codes: 0 stopped in order; 2 settings or keycast.yaml cannot be used; 1 anything
 * else, so that a supervisor restarts it. An address that the host does not have counts as 1: with 2, a host that boots
 * before its network is there would stay without the service.
 *
 * @param {object} service
 * @param {string} service.name
 * @param {import('./log.ts').Log} service.log
 * @param {number} service.graceMs time for all stop steps together
 * @param {() => Promise<unknown>} service.start
 * @param {[what: string, step: () => unknown][]} service.stop run one after the other; a step that fails does not keep
 *   the next from running. They run only after `start` is over
 * @param {(error: unknown) => string | undefined} [service.whyNot] names the setting to change if the error's own words
 *   do not
 * @param {Runtime} [service.runtime] the process, unless a test says otherwise
 * @returns {Promise<void>} once the service is ready, or will not be
 */
export async function runService({ name, log, graceMs, start, stop, whyNot = () => undefined, runtime = process }) {
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

  /** @param {string} signal */
  const shutDown = async signal => {
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

/** @param {unknown} error */
const messageOf = error => (error instanceof Error ? error.message : String(error))
