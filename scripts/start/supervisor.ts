// Drives our own pm2, a daemon with a folder of its own, through pm2's API.
import { promisify } from 'node:util'
import { MARK } from './pm2-home.ts'

/**
 * @typedef {import('./services.ts').App} App
 * @typedef {object} Exit
 * @property {string} service
 * @property {number} code 0 also when a signal ended it, which pm2 does not tell
 * @property {boolean} final pm2 will not start it again
 *
 * @typedef {Awaited<ReturnType<typeof loadSupervisor>>} Supervisor
 */

/**
 * @param {object} options
 * @param {string} options.home
 * @param {(service: string, stream: 'out' | 'err', chunk: string) => void} options.onOutput
 * @param {(exit: Exit) => void} options.onExit
 * @param {(service: string) => void} options.onOnline called when a service was started, for the first time or again
 */
export async function loadSupervisor({ home, onOutput, onExit, onOnline }) {
  // pm2 reads these when it is loaded, and its daemon inherits them: its folder, no version check, no agent of its makers.
  Object.assign(process.env, {
    PM2_HOME: home,
    [MARK]: home,
    PM2_DISABLE_VERSION_CHECK: 'true',
    PM2_NO_INTERACTION: 'true',
    PM2_PROGRAMMATIC: 'true',
    PM2_SILENT: 'true',
  })
  // A daemon that ends sends its client this signal, whose default is to dump core.
  process.on('SIGQUIT', () => {})
  const { default: pm2 } = await import('pm2')
  const api = {
    connect: promisify((/** @type {(error: Error, meta: any) => void} */ done) =>
      pm2.connect(/** @type {any} */ (done)),
    ),
    launchBus: promisify(pm2.launchBus.bind(pm2)),
    start: promisify((/** @type {any} */ app, /** @type {any} */ done) => pm2.start(app, done)),
    list: promisify(pm2.list.bind(pm2)),
    delete: promisify((/** @type {string} */ name, /** @type {any} */ done) => pm2.delete(name, done)),
    killDaemon: promisify((/** @type {any} */ done) => pm2.killDaemon(done)),
  }

  return {
    /** @returns {Promise<boolean>} whether a daemon ran already; if none did, one runs now */
    async connect() {
      const meta = await api.connect()
      const bus = await api.launchBus()
      bus.on('log:out', (/** @type {any} */ { process, data }) => onOutput(process.name, 'out', data))
      bus.on('log:err', (/** @type {any} */ { process, data }) => onOutput(process.name, 'err', data))
      bus.on('process:event', (/** @type {any} */ { event, process: { name, status, exit_code: code, ...rest } }) => {
        if (event === 'online') onOnline(name)
        // pm2 reports a service that it stops twice, first as stopping.
        if (event !== 'exit' || status === 'stopping') return
        onExit({ service: name, code, final: status === 'errored' || [rest.stop_exit_codes].flat().includes(code) })
      })
      return meta.new_pm2_instance === false
    },

    /** Resolves when the service says that it is ready, ends, or is silent for its `listen_timeout`. @param {App} app */
    start: async app => void (await api.start(app)),

    /**
     * Stops services together and removes them. Names that pm2 does not know count as stopped.
     *
     * @param {string[]} names
     */
    async stop(names) {
      const running = (await api.list()).map(({ name }) => String(name))
      await Promise.all(names.filter(name => running.includes(name)).map(name => api.delete(name)))
    },

    /** Ends the daemon and everything it still runs. */
    kill: async () => void (await api.killDaemon()),
  }
}
