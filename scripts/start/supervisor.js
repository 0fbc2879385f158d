// Our own pm2: a daemon with a folder of its own, driven through pm2's API.
import { promisify } from 'node:util'
import { MARK } from './pm2-home.js'

/**
 * @typedef {import('./services.js').App} App
 * @typedef {object} Exit
 * @property {string} service
 * @property {number} code 0 also when a signal ended it: pm2 does not tell
 * @property {boolean} final pm2 will not start it again
 *
 * @typedef {Awaited<ReturnType<typeof loadSupervisor>>} Supervisor
 */

/**
 * @param {object} options
 * @param {string} options.home
 * @param {(service: string, stream: 'out' | 'err', chunk: string) => void} options.onOutput
 * @param {(exit: Exit) => void} options.onExit
 * @param {(service: string) => void} options.onOnline a service was started, for the first time or again
 */
export async function loadSupervisor({ home, onOutput, onExit, onOnline }) {
  // Read when pm2 is loaded, and inherited by its daemon: its folder, no word to its makers, no agent of theirs.
  Object.assign(process.env, {
    PM2_HOME: home,
    [MARK]: home,
    PM2_DISABLE_VERSION_CHECK: 'true',
    PM2_NO_INTERACTION: 'true',
    PM2_PROGRAMMATIC: 'true',
    PM2_SILENT: 'true',
  })
  // A daemon that ends says so to its client with this signal, whose default is to dump core.
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
    /** @returns {Promise<boolean>} whether a daemon was there already; if not, there is one now */
    async connect() {
      const meta = await api.connect()
      const bus = await api.launchBus()
      bus.on('log:out', (/** @type {any} */ { process, data }) => onOutput(process.name, 'out', data))
      bus.on('log:err', (/** @type {any} */ { process, data }) => onOutput(process.name, 'err', data))
      bus.on('process:event', (/** @type {any} */ { event, process: { name, status, exit_code: code, ...rest } }) => {
        if (event === 'online') onOnline(name)
        // Of one that is being stopped pm2 tells twice; the second time it is stopped.
        if (event !== 'exit' || status === 'stopping') return
        onExit({ service: name, code, final: status === 'errored' || [rest.stop_exit_codes].flat().includes(code) })
      })
      return meta.new_pm2_instance === false
    },

    /** Resolves when the service said it is ready, ended, or was silent for its `listen_timeout`. @param {App} app */
    start: async app => void (await api.start(app)),

    /**
     * Stops services, together, and forgets them. Those it does not run are stopped.
     *
     * @param {string[]} names
     */
    async stop(names) {
      const running = (await api.list()).map(({ name }) => String(name))
      await Promise.all(names.filter(name => running.includes(name)).map(name => api.delete(name)))
    },

    /** Ends the daemon. Whatever it still runs ends with it. */
    kill: async () => void (await api.killDaemon()),
  }
}
