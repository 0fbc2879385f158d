// Readers of values on the command line. Each error names the expected form.
import { InvalidArgumentError } from 'commander'

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/** @param text as in 500ms, 2s, 1.5s, 10m @returns milliseconds */
export function readDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
  if (match === null) throw new InvalidArgumentError('Give a duration, as in 500ms, 2s or 10m.')
  return Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS]
}

/** @param ms a whole number @returns as {@link readDuration} reads it */
export function durationText(ms: number): string {
  const [unit, unitMs] = Object.entries(UNITS_MS).findLast(([, unitMs]) => ms % unitMs === 0) ?? ['ms', 1]
  return ms === 0 ? '0s' : `${ms / unitMs}${unit}`
}

/** @param text as in 1000, 64KiB, 4MiB @returns bytes */
export function readSize(text: string): number {
  const match = /^([1-9]\d*)(KiB|MiB)?$/.exec(text)
  if (match === null) throw new InvalidArgumentError('Give a size, as in 130000, 64KiB or 4MiB.')
  return Number(match[1]) * (match[2] === 'KiB' ? 1_024 : match[2] === 'MiB' ? 1_024 ** 2 : 1)
}

export const readInteger = (min: number, max: number) => (text: string) => {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number < min || number > max) {
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`)
  }
  return number
}

export const readPort = readInteger(0, 65_535)
