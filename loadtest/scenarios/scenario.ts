// The type of a scenario: its inputs from a run, and its results.
import type { Command } from 'commander'
import type { Histogram } from 'hdr-histogram-js'
import type { LatencySummary } from '../generator/histogram.ts'
import type { Pool, PoolOptions, Second } from '../generator/pool.ts'
import type { Content, references, System } from '../system/start.ts'
import type { ServiceSample, Watcher } from '../system/watcher.ts'

/** As the command line gives them. Every scenario has these; a system is either started or named by `url`. */
type CommonOptions = {
  start?: 'keycast' | keyof typeof references
  reference: (keyof typeof references)[]
  url: string[]
  remote: boolean
  pid: { role: string; value: number }[]
  metrics: { role: string; value: string }[]
  provider?: string
  gateways?: number
  tls: boolean
  /** A file, or true for a new secret. */
  token?: string | true
  /** Values as JSON, in place of the bytes that the client library takes. */
  json: boolean
  processes: number
  timeMax: number
  output: string
  label?: string
}

/** Each scenario has some of these. Durations are in milliseconds. */
type Figures =
  | 'attackers'
  | 'behind'
  | 'bytes'
  | 'calm'
  | 'change'
  | 'changes'
  | 'clients'
  | 'connections'
  | 'every'
  | 'fasterAfter'
  | 'hold'
  | 'interval'
  | 'keys'
  | 'latency'
  | 'lines'
  | 'messages'
  | 'nodes'
  | 'over'
  | 'perSession'
  | 'publishers'
  | 'quiet'
  | 'ramp'
  | 'rate'
  | 'recover'
  | 'redial'
  | 'refresh'
  | 'rooms'
  | 'rounds'
  | 'seconds'
  | 'sessions'
  | 'settle'
  | 'updates'
  | 'viewers'
  | 'warmUp'
  | 'window'
  | 'writers'

export type Options = CommonOptions &
  Record<Figures, number> & {
    key: string
    path: string
    names: boolean
    log: 'lmdb' | 'memory' | 'valkey'
    source: 'pushed' | 'http'
  }

export interface Scenario {
  /** The word on the command line. */
  name: string
  /** One sentence. */
  about: string
  /** Its own, beside those all have. */
  addOptions: (command: Command) => void
  /** Options that do not go together. */
  problem?: (options: Options) => string | undefined
  /** The content that a system started for it serves, beside small documents that do not change. */
  content?: (options: Options) => Content
  /** The gateways of a system started for it, unless given; else as many as the clients need. */
  gateways?: number
  /** How many at most, `--clients` unless given: processes, gateways and source addresses follow from it. */
  clients?: (options: Options) => number
  /** Counts of the series that make the throughput chart, the one that is shown as it goes first. */
  rates: { count: string; label: string }[]
  /** The counts that stand in the result. With `opened` among them every connection must be accounted for. */
  counts: string[]
  /** The reference programs that it can run against; `bare` and `naive` unless said. */
  references?: string[]
  /** Whether it asks the backend itself. */
  needsProvider?: boolean
  /** Whether its clients bring tokens also without --token. */
  needsTokens?: boolean
  run: (context: Context, options: Options) => Promise<Outcome>
}

export const clientsOf = ({ clients = ({ clients }) => clients }: Scenario, options: Options) => clients(options)

/** The means that a run gives its scenario. */
export interface Context {
  target: System
  /**
   * Its seconds become the run's series, unless it is `aside`. Its clients bring tokens where the run's do, unless
   * `signing` says otherwise; `settings` are given the dialect that the system speaks.
   */
  startPool: (
    load: Omit<PoolOptions, 'urls' | 'onSecond' | 'processes'> & {
      urls?: string[]
      processes?: number
      onSecond?: (second: SeriesSecond, histograms: Record<string, Histogram>) => void
      aside?: boolean
    },
  ) => Promise<Pool>
  watcher: Watcher
  series: SeriesSecond[]
  /** Names the part of the run to which the coming seconds belong. */
  phase: (name: string) => void
  /** Waits until a condition holds (true), the time is over or the run is to end. */
  until: (condition: () => boolean, msMax: number) => Promise<boolean>
  /** false where the run is to end. */
  wait: (ms: number) => Promise<boolean>
  /** The reason to end the run early, if there is one. */
  ended: () => EndedBy | undefined
  /** A line for the person watching. */
  say: (text: string) => void
}

/** Why a run ended: it was done, Ctrl-C, its time was over, or a process died. */
export type EndedBy = 'done' | 'interrupted' | 'time' | 'died'

/** One second of a run. Figures are of that second alone, `open` at its end. */
export interface SeriesSecond {
  /** Seconds since the run began. */
  at: number
  phase: string
  /** Clients connected. */
  open: number
  connecting: number
  counts: Record<string, number>
  latency: LatencySummary | undefined
  generator: Second['generator']
  /** The sample of the services spans. */
  seconds: number
  freeBytes?: number
  cpuBusyRatio?: number
  services: ServiceSample[]
}

/** A figure a run is about. */
export interface Figure {
  label: string
  /** undefined where it could not be measured. */
  value: number | undefined
  unit: string
  better?: 'higher' | 'lower'
  /** The limit that it is compared with. */
  note?: string
}

export interface Table {
  title: string
  columns: string[]
  rows: (string | number)[][]
  note?: string
  bars?: Bars[]
}

/** A column that the report shows as bars, too. */
interface Bars {
  column: number
  title: string
  log?: boolean
}

/** An equation that must hold if nothing was miscounted. */
export interface Sum {
  text: string
  holds: boolean
}

export interface Outcome {
  /** One sentence: what was found. */
  headline: string
  /** The most telling ones first. */
  figures: Record<string, Figure>
  /** All there are: the scenario names those that the result has. */
  counts: Record<string, number>
  sums: Sum[]
  latency?: Histogram
  /** The name of the measured latency. */
  latencyLabel?: string
  /** The reasons of refusals or losses. */
  reasons?: Record<string, number>
  /** The seconds the figures come from, for telling whose limit they are. */
  measured?: SeriesSecond[]
  tables?: Table[]
  notes?: string[]
}
