// CPU time and memory of processes and of the machine, as Linux counts them in /proc (proc(5)).
import { readFileSync } from 'node:fs'

/** Of utime and stime: USER_HZ, 100 on every Linux there is. */
const TICK_MS = 10

/**
 * A process and all its descendants. `anonymousBytes`: of the resident memory what is not pages of files, such as those
 * of LMDB, which the system takes back when it needs them.
 */
export interface Usage {
  cpuMs: number
  residentBytes: number
  anonymousBytes: number
}

export function readTree(pid: number): Usage | undefined {
  const own = readProcess(pid)
  if (own === undefined) return undefined
  for (const child of childrenOf(pid)) {
    const tree = readTree(child)
    own.cpuMs += tree?.cpuMs ?? 0
    own.residentBytes += tree?.residentBytes ?? 0
    own.anonymousBytes += tree?.anonymousBytes ?? 0
  }
  return own
}

/** proc(5): /proc/PID/stat and status. */
function readProcess(pid: number): Usage | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`)
  const status = readIfThere(`/proc/${pid}/status`)
  if (stat === undefined || status === undefined) return undefined
  // The second field, the name, may hold spaces and brackets: the rest begins after its last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const bytesOf = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1_024
  return {
    cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
    residentBytes: bytesOf('VmRSS'),
    anonymousBytes: bytesOf('RssAnon'),
  }
}

/** Processes a process has started and that still run. */
export function childrenOf(pid: number): number[] {
  return (readIfThere(`/proc/${pid}/task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number)
}

/** Time all CPUs together were busy and were there. */
export function readMachineCpu(): { busy: number; all: number } | undefined {
  const line = readIfThere('/proc/stat')?.split('\n', 1)[0]
  if (line === undefined) return undefined
  const times = line.split(/\s+/).slice(1, 9).map(Number)
  const all = times.reduce((sum, time) => sum + time, 0)
  return { busy: all - times[3] - times[4], all }
}

export function readFreeBytes(): number | undefined {
  const [, kib] = /^MemAvailable:\s+(\d+) kB$/m.exec(readIfThere('/proc/meminfo') ?? '') ?? []
  return kib === undefined ? undefined : Number(kib) * 1_024
}

/** @returns undefined where it is gone, or on a system without /proc */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
