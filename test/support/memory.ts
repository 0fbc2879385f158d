// The resident memory of a process, as the kernel counts it.
import { readFileSync } from 'node:fs'
import { atEnd } from './cleanup.ts'

/** One MiB. */
export const MIB = 1_048_576

/** Resident memory, in bytes. */
export function residentBytes(pid: number) {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) * 1_024
}

/**
 * Keeps the highest value seen until asked.
 *
 * @returns stops watching; the growth since the start, in bytes
 */
export function watchMemory(pid: number): () => number {
  const atStart = residentBytes(pid)
  let most = atStart
  const look = () => {
    most = Math.max(most, residentBytes(pid))
  }
  const timer = setInterval(look, 20)
  const stop = () => clearInterval(timer)
  atEnd(stop) // a failed test never comes to ask
  return () => {
    stop()
    look()
    return most - atStart
  }
}
