// Drives our own pm2, a daemon with a folder of its own, through pm2's API.
import { promisify } from 'node:util'
import type { StartOptions } from 'pm2'
import { MARK } from './pm2-home.ts'
import type { App } from './services.ts'

export interface Exit {
  service: string
  /** 0 also when a signal ended it, which pm2 does not tell. */
  code: number
  /** pm2 will not start it again. */
  final: boolean
}

export type Supervisor = Awaited<ReturnType<typeof loadSupervisor>>

/** What pm2 says, of which its types know nothing. */
interface Daemon {
  new_pm2_instance: boolean
}
interface Output {
  process: { name: string }
  data: string
}
interface Event {
  event: string
  process: { name: string; status: string; exit_code: number; stop_exit_codes?: number | number[] }
}

interface Options {
  home: string
  onOutput: (service: string, stream: 'out' | 'err', chunk: string) => void
  onExit: (exit: Exit) => void
  /** Called when a service was started, for the first time or again. */
  onOnline: (service: string) => void
}

export async function loadSupervisor({ home, onOutput, onExit, onOnline }: Options) {
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
    connect: promisify((done: (error: Error, meta: Daemon) => void) => pm2.connect(done as (error: Error) => void)),
    launchBus: promisify(pm2.launchBus.bind(pm2)),
    start: promisify((app: App, done: (error: Error) => void) => pm2.start(app as StartOptions, done)),
    list: promisify(pm2.list.bind(pm2)),
    delete: promisify((name: string, done: (error: Error) => void) => pm2.delete(name, done)),
    killDaemon: promisify((done: (error: Error) => void) => pm2.killDaemon(done)),
  }

  return {
    /** @returns whether a daemon ran already; if none did, one runs now */
    async connect(): Promise<boolean> {
      const meta = await api.connect()
      const bus = await api.launchBus()
      bus.on('log:out', ({ process, data }: Output) => onOutput(process.name, 'out', data))
      bus.on('log:err', ({ process, data }: Output) => onOutput(process.name, 'err', data))
      bus.on('process:event', ({ event, process: { name, status, exit_code: code, ...rest } }: Event) => {
        if (event === 'online') onOnline(name)
        // pm2 reports a service that it stops twice, first as stopping.
        if (event !== 'exit' || status === 'stopping') return
        onExit({ service: name, code, final: status === 'errored' || [rest.stop_exit_codes].flat().includes(code) })
      })
      return meta.new_pm2_instance === false
    },

    /** Resolves when the service says that it is ready, ends, or is silent for its `listen_timeout`. */
    start: async (app: App) => void (await api.start(app)),

    /** Stops services together and removes them. Names that pm2 does not know count as stopped. */
    async stop(names: string[]) {
      const running = (await api.list()).map(({ name }) => String(name))
      await Promise.all(names.filter(name => running.includes(name)).map(name => api.delete(name)))
    },

    /** Ends the daemon and everything it still runs. */
    kill: async () => void (await api.killDaemon()),
  }
}
