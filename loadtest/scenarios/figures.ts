// Figures and sums that several scenarios share.
import type { Histogram } from 'hdr-histogram-js'
import type { Context, Figure, SeriesSecond } from './scenario.ts'

/** The seconds of a run that belong to a part of it. */
export const secondsOf = ({ series }: Context, name: string) => series.filter(({ phase }) => phase === name)

/** A percentile of latencies, in milliseconds. */
export const msAt = (latency: Histogram, percentile: number) => latency.getValueAtPercentile(percentile) / 1_000

/**
 * CPU time the processes of each role took for each delivery, over some seconds.
 *
 * @param count the deliveries
 * @returns microseconds by role
 */
export function cpuPerDelivery(seconds: SeriesSecond[], count: string): Record<string, number> {
  const deliveries = sumOf(seconds, second => second.counts[count] ?? 0)
  const byRole: Record<string, number> = {}
  if (deliveries === 0) return byRole
  for (const { services } of seconds) {
    for (const { role, cpuMs } of services) {
      if (cpuMs !== undefined) byRole[role] = (byRole[role] ?? 0) + (cpuMs * 1_000) / deliveries
    }
  }
  return byRole
}

/**
 * The figures of CPU per delivery: the gateways' own, which the bare program's is held against, and the whole system's.
 */
export function cpuFigures(seconds: SeriesSecond[], count: string): Record<string, Figure> {
  const { gateway, ...others } = cpuPerDelivery(seconds, count)
  if (gateway === undefined) return {}
  const rest = Object.values(others).reduce((sum, each) => sum + each, 0)
  return {
    gatewayCpuPerDelivery: {
      label: 'Gateway CPU per delivery',
      value: gateway,
      unit: 'µs',
      better: 'lower',
    },
    systemCpuPerDelivery: {
      label: 'CPU per delivery, whole system',
      value: gateway + rest,
      unit: 'µs',
      better: 'lower',
      note: Object.entries(others)
        .map(([role, us]) => `${role} ${us.toFixed(1)} µs`)
        .join(', '),
    },
  }
}

/** What all processes of the system together took, whatever they did for it. */
export function usageFigures(seconds: SeriesSecond[]): Record<string, Figure> {
  const known = seconds.filter(({ services }) => services.some(({ cpuMs }) => cpuMs !== undefined))
  if (known.length === 0) return {}
  const cpuMs = sumOf(known, ({ services }) => sumOf(services, service => service.cpuMs ?? 0))
  const bytes = meanOf(known, ({ services }) => sumOf(services, service => service.residentBytes ?? 0))
  return {
    systemCpu: {
      label: 'CPU, whole system',
      value: cpuMs / sumOf(known, second => second.seconds) / 10,
      unit: '% of a core',
      better: 'lower',
    },
    systemMegabytes: { label: 'Memory, whole system', value: bytes / 1e6, unit: 'MB', better: 'lower' },
  }
}

/**
 * Resident memory of all processes of a role, the most of some seconds.
 *
 * @returns `undefined` where no process was looked at
 */
export function megabytesOf(seconds: SeriesSecond[], role: string): number | undefined {
  const bytes = seconds.map(({ services }) =>
    sumOf(services, service => (service.role === role ? (service.residentBytes ?? 0) : 0)),
  )
  const most = Math.max(0, ...bytes)
  return most > 0 ? most / 1e6 : undefined
}

/** A count a second, by the time that really passed: a generator at its limit reports its seconds late. */
export function perSecondOf(seconds: SeriesSecond[], count: string) {
  const passed = sumOf(seconds, second => second.seconds)
  return passed === 0 ? 0 : sumOf(seconds, second => second.counts[count] ?? 0) / passed
}

export const sumOf = <T>(items: T[], of: (item: T) => number) => items.reduce((sum, item) => sum + of(item), 0)

export const meanOf = <T>(items: T[], of: (item: T) => number) =>
  items.length === 0 ? 0 : sumOf(items, of) / items.length
