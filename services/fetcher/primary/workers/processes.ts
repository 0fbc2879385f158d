// Worker processes, by Node's cluster: forks of this program that know they are workers.
import cluster from 'node:cluster'
import { WORK_CREDIT_VARIABLE, WORK_ENDPOINT_VARIABLE } from '../../worker-messages.ts'

export interface WorkerProcess {
  /** Never used twice. */
  id: number
  pid: number | undefined
  /** Asks it to go. */
  disconnect: () => void
  kill: () => void
}

/** `onExit` is called once. */
export type Fork = (onExit: (how: { code: number | null; signal: string | null }) => void) => WorkerProcess

/**
 * Of a worker's own, and libuv takes up to half of them for lookups of names. A lookup whose servers are silent keeps its
 * thread for 10 s or more: of Node's four threads two such backends would take all that there are for the others.
 */
const THREADS = 32

interface Options {
  /** Of the work socket. */
  endpoint: string
  /** Leases that each takes at one time. */
  credit: number
}

export function createForks({ endpoint, credit }: Options): Fork {
  // The primary's own arguments say nothing to a worker.
  cluster.setupPrimary({ args: [] })

  return onExit => {
    const worker = cluster.fork({
      [WORK_ENDPOINT_VARIABLE]: endpoint,
      [WORK_CREDIT_VARIABLE]: String(credit),
      UV_THREADPOOL_SIZE: String(THREADS),
    })
    let ended = false
    const end = (code: number | null, signal: string | null) => {
      if (ended) return
      ended = true
      onExit({ code, signal })
    }
    worker.on('exit', end)
    // It could not be started, or not be sent a message: it is of no use either way.
    worker.on('error', () => {
      worker.process.kill('SIGKILL')
      end(null, null)
    })
    return {
      id: worker.id,
      pid: worker.process.pid,
      disconnect: () => worker.disconnect(),
      kill: () => void worker.process.kill('SIGKILL'),
    }
  }
}
