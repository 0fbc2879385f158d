// Names the bottleneck of a run: the system, the generator, or the machine that both share.

/** Share of an event loop, or of a core for a single-threaded process. Above it requests begin to queue. */
const BUSY = 0.9
/** A generator that sends this late no longer makes the load that was asked for. */
const LATE_MS = 100
const MACHINE_BUSY = 0.97
/** Share of the machine. The kernel's work for sockets belongs to no process, and stays below this. */
export const OTHERS_BUSY = 0.2

type Limiter = 'system' | 'generator' | 'both' | 'machine' | 'neither'

/** A second of a run, as far as it matters here. */
interface Load {
  generator: { busiest: number; lateMsP99: number; cpuMs: number }
  /** Of the machine. */
  cpuBusyRatio?: number
  /** The sample of the services spans. */
  seconds: number
  services: { role: string; cpuMs?: number }[]
}

/**
 * The bottleneck during some seconds, by their mean: one late second is no limit.
 *
 * @param cores of the machine
 * @returns `othersRatio`: the share of the machine that other programs used, where it is known
 */
export function findBottleneck(loads: Load[], cores: number): { limiter: Limiter; text: string; othersRatio: number } {
  if (loads.length === 0) return { limiter: 'neither', text: 'Too short to say what was the limit.', othersRatio: 0 }
  const mean = (of: (load: Load) => number) => loads.reduce((sum, load) => sum + of(load), 0) / loads.length
  const generatorBusy = mean(load => load.generator.busiest)
  const lateMs = mean(load => load.generator.lateMsP99)
  const serverBusy = mean(hottest)
  const machineBusy = mean(load => load.cpuBusyRatio ?? 0)

  const watched = loads.some(({ services }) => services.some(({ cpuMs }) => cpuMs !== undefined))
  const generator = generatorBusy > BUSY || lateMs > LATE_MS
  const system = serverBusy > BUSY
  const alone = generator ? 'generator' : machineBusy > MACHINE_BUSY ? 'machine' : 'neither'
  const limiter = system ? (generator ? 'both' : 'system') : alone
  const facts = `generator ${percent(generatorBusy)} busy, ${lateMs.toFixed(0)} ms late at its 99th percentile; ${watched ? `busiest service ${percent(serverBusy)} of a core` : 'services not watched'}; machine ${percent(machineBusy)}`
  const ours = mean(({ generator, services, seconds }) => (generator.cpuMs + sum(services)) / 1_000 / seconds / cores)
  const othersRatio = loads.some(knowsAll) ? Math.max(0, machineBusy - ours) : 0
  const remarks = [
    ...(limiter !== 'machine' && machineBusy > MACHINE_BUSY
      ? ['All cores were in use, so every process waited for one.']
      : []),
    ...(othersRatio > OTHERS_BUSY
      ? [`Other programs used ${percent(othersRatio)} of the machine meanwhile: run again without them.`]
      : []),
  ]
  return { limiter, text: [`${sentences[limiter]} (${facts}).`, ...remarks].join(' '), othersRatio }
}

const sentences: Record<Limiter, string> = {
  system: 'The system was at its limit, the generator was not',
  generator: 'THE GENERATOR WAS THE LIMIT, not the system: more processes or another machine would show more',
  both: 'Generator and system were at their limit together',
  machine: 'All cores were in use: the machine was the limit, neither the generator nor a service alone',
  neither: 'Neither the generator nor a service was at its limit',
}

const sum = (services: { cpuMs?: number }[]) => services.reduce((all, { cpuMs = 0 }) => all + cpuMs, 0)

/** Without the CPU time of the services nobody can say what others used. */
const knowsAll = ({ services }: Load) => services.length > 0 && services.every(({ cpuMs }) => cpuMs !== undefined)

/** CPU of the busiest service, in cores. */
const hottest = ({ services, seconds }: Load) =>
  Math.max(0, ...services.map(({ cpuMs = 0 }) => cpuMs / 1_000 / seconds))

const percent = (ratio: number) => `${Math.round(ratio * 100)} %`
