// Watches the system under load second by second: CPU time and memory of its processes, heap and garbage collections of
// its services, and the memory the machine has left.
import { performance } from 'node:perf_hooks'
import { WebSocket } from 'ws'
import { readExposition, sumIn } from './exposition.ts'
import { readFreeBytes, readMachineCpu, readTree } from './proc.ts'

/** A service that answers later is left out of the sample: waiting for it would make the samples overlap. */
const SCRAPE_MS = 900

/** A figure that is asked for once may take longer: a service at its limit answers late. */
const ASK_MS = 10_000

/**
 * Something to watch: a process with all it starts, a metrics endpoint, or both. `role`: gateway, fetcher, proxy, …;
 * `inspectorUrl`: of a Node process started with --inspect.
 */
export interface Watched {
  name: string
  role: string
  pid?: number
  metricsUrl?: string
  inspectorUrl?: string
}

/** Since the sample before. A figure that could not be learnt is undefined. */
export interface ServiceSample {
  name: string
  role: string
  cpuMs?: number
  residentBytes?: number
  anonymousBytes?: number
  heapBytes?: number
  majorGcs?: number
}

/** `cpuBusyRatio`: the share of the whole machine's CPU time in use, whoever used it. */
interface Sample {
  seconds: number
  freeBytes: number | undefined
  cpuBusyRatio: number | undefined
  services: ServiceSample[]
}

export type Watcher = ReturnType<typeof createWatcher>

export function createWatcher(watched: Watched[]) {
  /** The cumulative figures of the last look. */
  const last = new Map<Watched, { cpuMs?: number; majorGcs?: number }>()
  let lastMachine = readMachineCpu()
  let lastAt = performance.now()

  const look = async (one: Watched): Promise<ServiceSample> => {
    const fromProc = one.pid === undefined ? undefined : readTree(one.pid)
    const exported = await figuresOf(one)
    const cpuMs = fromProc?.cpuMs ?? exported?.cpuMs
    const before = last.get(one)
    last.set(one, { cpuMs, majorGcs: exported?.majorGcs })
    return {
      name: one.name,
      role: one.role,
      cpuMs: difference(cpuMs, before?.cpuMs),
      residentBytes: fromProc?.residentBytes ?? exported?.residentBytes,
      anonymousBytes: fromProc?.anonymousBytes,
      heapBytes: exported?.heapBytes,
      majorGcs: difference(exported?.majorGcs, before?.majorGcs),
    }
  }

  return {
    async sample(): Promise<Sample> {
      const services = await Promise.all(watched.map(look))
      const at = performance.now()
      const seconds = (at - lastAt) / 1_000
      lastAt = at
      const machine = readMachineCpu()
      const cpuBusyRatio = machine && lastMachine && ratio(machine, lastMachine)
      lastMachine = machine
      return { seconds, freeBytes: readFreeBytes(), cpuBusyRatio, services }
    },

    /**
     * The CPU time of each role so far, for figures over a phase.
     *
     * @returns milliseconds
     */
    async cpuByRole(): Promise<Record<string, number>> {
      const sums: Record<string, number> = {}
      for (const one of watched) {
        const cpuMs = one.pid === undefined ? (await figuresOf(one))?.cpuMs : readTree(one.pid)?.cpuMs
        if (typeof cpuMs === 'number') sums[one.role] = (sums[one.role] ?? 0) + cpuMs
      }
      return sums
    },

    /**
     * A counter the services export, of all of them together.
     *
     * @param name without what stands before it for each service
     * @returns undefined where none exports it, or one cannot be asked
     */
    async exported(name: string): Promise<number | undefined> {
      const urls = watched.flatMap(({ metricsUrl }) => metricsUrl ?? [])
      const texts = await Promise.all(urls.map(url => scrape(url, ASK_MS)))
      if (texts.includes(undefined)) return undefined
      return sumIn(texts.join('\n'), name)
    },

    /** Garbage is no memory a session takes: collected before a look, where the processes allow it. */
    async collectGarbage() {
      await Promise.all(watched.map(({ inspectorUrl }) => inspectorUrl && collectGarbage(inspectorUrl)))
    },

    /** Resident memory by role, now. @returns bytes */
    residentByRole(): Record<string, number> {
      const sums: Record<string, number> = {}
      for (const { pid, role } of watched) {
        const bytes = pid === undefined ? undefined : readTree(pid)?.residentBytes
        if (bytes !== undefined) sums[role] = (sums[role] ?? 0) + bytes
      }
      return sums
    },
  }
}

/** @param before a restarted service begins again at 0 */
function difference(now: number | undefined, before: number | undefined) {
  return now === undefined || before === undefined ? undefined : Math.max(0, now - before)
}

function ratio(now: { busy: number; all: number }, before: { busy: number; all: number }) {
  return now.all === before.all ? undefined : (now.busy - before.busy) / (now.all - before.all)
}

/** Chrome DevTools Protocol. */
function collectGarbage(url: string) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url)
    socket.on('error', reject)
    socket.on('open', () => socket.send('{"id":1,"method":"HeapProfiler.collectGarbage"}'))
    socket.on('message', () => {
      socket.close()
      resolve(undefined)
    })
  })
}

async function figuresOf({ metricsUrl }: Watched) {
  const text = metricsUrl === undefined ? undefined : await scrape(metricsUrl)
  return text === undefined ? undefined : readExposition(text)
}

async function scrape(url: string, deadlineMs = SCRAPE_MS): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(deadlineMs) })
    return await response.text()
  } catch {
    return undefined
  }
}
