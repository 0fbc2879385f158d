// What the system under load takes, second by second: CPU and memory of its processes as the kernel counts them, heap
// and garbage collections as its services export them, and the memory the machine has left.
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { WebSocket } from 'ws'

/** A service that cannot answer in this time is left out of one sample, not waited for. */
const SCRAPE_MS = 900
/** Of utime and stime in /proc: USER_HZ, 100 on every Linux there is. */
const TICK_MS = 10

/**
 * Something to watch: a process with all it starts, a metrics endpoint, or both.
 *
 * @typedef {{ name: string, role: string, pid?: number, metricsUrl?: string, inspectorUrl?: string }} Watched `role`:
 *   gateway, fetcher, proxy, …; `inspectorUrl`: of a Node process started with --inspect
 *
 * Since the sample before. What could not be learnt is undefined.
 * @typedef {{ name: string, role: string, cpuMs?: number, residentBytes?: number, heapBytes?: number, majorGcs?: number }} ServiceSample
 * @typedef {{ seconds: number, freeBytes: number | undefined, cpuBusyRatio: number | undefined, services: ServiceSample[] }} Sample
 *   `cpuBusyRatio`: the share of the whole machine's CPU time in use, whoever used it
 *
 * @typedef {ReturnType<typeof createWatcher>} Watcher
 */

/**
 * @param {Watched[]} watched
 */
export function createWatcher(watched) {
  /** The cumulative figures of the last look. @type {Map<Watched, { cpuMs?: number, majorGcs?: number }>} */
  const last = new Map()
  let lastMachine = readMachineCpu()
  let lastAt = performance.now()

  /** @param {Watched} one @returns {Promise<ServiceSample>} */
  const look = async one => {
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
      heapBytes: exported?.heapBytes,
      majorGcs: difference(exported?.majorGcs, before?.majorGcs),
    }
  }

  return {
    /** @returns {Promise<Sample>} */
    async sample() {
      const services = await Promise.all(watched.map(look))
      const at = performance.now()
      const seconds = (at - lastAt) / 1_000
      lastAt = at
      const machine = readMachineCpu()
      const cpuBusyRatio = machine && lastMachine && ratio(machine, lastMachine)
      lastMachine = machine
      return { seconds, freeBytes: readFreeBytes(), cpuBusyRatio, services }
    },

    /** CPU time each role has taken so far, for what is measured over a phase. @returns {Promise<Record<string, number>>} milliseconds */
    async cpuByRole() {
      /** @type {Record<string, number>} */
      const sums = {}
      for (const one of watched) {
        const cpuMs = one.pid === undefined ? (await figuresOf(one))?.cpuMs : readTree(one.pid)?.cpuMs
        if (typeof cpuMs === 'number') sums[one.role] = (sums[one.role] ?? 0) + cpuMs
      }
      return sums
    },

    /**
     * A counter the services export, of all of them together.
     *
     * @param {string} name without what stands before it for each service
     * @returns {Promise<number | undefined>} undefined where none exports it, or one cannot be asked
     */
    async exported(name) {
      const urls = watched.flatMap(({ metricsUrl }) => metricsUrl ?? [])
      const texts = await Promise.all(urls.map(scrape))
      if (texts.includes(undefined)) return undefined
      return sumIn(texts.join('\n'), name)
    },

    /** Garbage is no memory a session takes: collected before a look, where the processes allow it. */
    async collectGarbage() {
      await Promise.all(watched.map(({ inspectorUrl }) => inspectorUrl && collectGarbage(inspectorUrl)))
    },

    /** Resident memory by role, now. @returns {Record<string, number>} bytes */
    residentByRole() {
      /** @type {Record<string, number>} */
      const sums = {}
      for (const { pid, role } of watched) {
        const bytes = pid === undefined ? undefined : readTree(pid)?.residentBytes
        if (bytes !== undefined) sums[role] = (sums[role] ?? 0) + bytes
      }
      return sums
    },
  }
}

/** @param {number | undefined} now @param {number | undefined} before a restarted service begins again at 0 */
function difference(now, before) {
  return now === undefined || before === undefined ? undefined : Math.max(0, now - before)
}

/** A process and all its descendants. @param {number} pid @returns {{ cpuMs: number, residentBytes: number } | undefined} */
export function readTree(pid) {
  const own = readProcess(pid)
  if (own === undefined) return undefined
  let { cpuMs, residentBytes } = own
  for (const child of childrenOf(pid)) {
    const tree = readTree(child)
    cpuMs += tree?.cpuMs ?? 0
    residentBytes += tree?.residentBytes ?? 0
  }
  return { cpuMs, residentBytes }
}

/** proc(5): /proc/PID/stat and statm. @param {number} pid */
function readProcess(pid) {
  const stat = readIfThere(`/proc/${pid}/stat`)
  const status = readIfThere(`/proc/${pid}/status`)
  if (stat === undefined || status === undefined) return undefined
  // The second field, the name, may hold spaces and brackets: the rest begins after its last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [, kib = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? []
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS, residentBytes: Number(kib) * 1_024 }
}

/** Processes a process has started and that still run. @param {number} pid @returns {number[]} */
export function childrenOf(pid) {
  return (readIfThere(`/proc/${pid}/task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number)
}

/** Time all CPUs together were busy and were there. @returns {{ busy: number, all: number } | undefined} */
function readMachineCpu() {
  const line = readIfThere('/proc/stat')?.split('\n', 1)[0]
  if (line === undefined) return undefined
  const times = line.split(/\s+/).slice(1, 9).map(Number)
  const all = times.reduce((sum, time) => sum + time, 0)
  return { busy: all - times[3] - times[4], all }
}

/** @param {{ busy: number, all: number }} now @param {{ busy: number, all: number }} before */
function ratio(now, before) {
  return now.all === before.all ? undefined : (now.busy - before.busy) / (now.all - before.all)
}

function readFreeBytes() {
  const [, kib] = /^MemAvailable:\s+(\d+) kB$/m.exec(readIfThere('/proc/meminfo') ?? '') ?? []
  return kib === undefined ? undefined : Number(kib) * 1_024
}

/** @param {string} path @returns {string | undefined} undefined where it is gone, or on a system without /proc */
function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Chrome DevTools Protocol. @param {string} url */
function collectGarbage(url) {
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

/** @param {Watched} one */
async function figuresOf({ metricsUrl }) {
  const text = metricsUrl === undefined ? undefined : await scrape(metricsUrl)
  return text === undefined ? undefined : readExposition(text)
}

/** @param {string} url @returns {Promise<string | undefined>} */
async function scrape(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(SCRAPE_MS) })
    return await response.text()
  } catch {
    return undefined
  }
}

/**
 * The figures of a service from its Prometheus metrics (text exposition format), whatever the service's name in them.
 *
 * @param {string} text
 */
export function readExposition(text) {
  const cpuSeconds = sumIn(text, 'process_cpu_seconds_total')
  return {
    cpuMs: cpuSeconds === undefined ? undefined : cpuSeconds * 1_000,
    residentBytes: sumIn(text, 'process_resident_memory_bytes'),
    heapBytes: sumIn(text, 'v8_heap_used_bytes'),
    majorGcs: sumIn(text, 'gc_runs_total', '\\{kind="major"\\}'),
  }
}

/** @param {string} text @param {string} name @param {string} [labels] a pattern @returns {number | undefined} */
function sumIn(text, name, labels = '(?:\\{[^}]*\\})?') {
  const found = [...text.matchAll(new RegExp(`^keycast_[a-z]+(?:_[a-z]+)*?_${name}${labels} (\\S+)`, 'gm'))]
  return found.length === 0 ? undefined : found.reduce((sum, [, value]) => sum + Number(value), 0)
}
