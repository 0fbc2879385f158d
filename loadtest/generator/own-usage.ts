// CPU, memory and lateness of the generator itself, so that a report can tell its limit from the system's.
import { performance } from 'node:perf_hooks'
import { createHistogram, record } from './histogram.ts'

export interface Usage {
  cpuMs: number
  busy: number
  lateMsP99: number
  lateMsMax: number
  residentBytes: number
}

export function createUsageMeter() {
  const late = createHistogram()
  let utilization = performance.eventLoopUtilization()
  let cpu = process.cpuUsage()

  return {
    /** Records how late the schedule sent requests. */
    onLate(lateUs: number, requests: number) {
      record(late, lateUs, requests)
    },

    /** Since the last call. `busy`: the share of the time in which the event loop had work, 0 to 1. */
    take(): Usage {
      const used = process.cpuUsage(cpu)
      const busy = performance.eventLoopUtilization(utilization).utilization
      cpu = process.cpuUsage()
      utilization = performance.eventLoopUtilization()
      const usage = {
        cpuMs: (used.user + used.system) / 1_000,
        busy,
        lateMsP99: late.getValueAtPercentile(99) / 1_000,
        lateMsMax: late.totalCount === 0 ? 0 : late.maxValue / 1_000,
        residentBytes: process.memoryUsage.rss(),
      }
      late.reset()
      return usage
    },
  }
}
