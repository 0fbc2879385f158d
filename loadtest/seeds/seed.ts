// The type of a seed: one of the five documents this project started from, as tables of runs. Each run is a command line of
// the load test, so that a reader can repeat it alone.
import type { Chart } from '../report/seeds/draw.ts'
import type { Result } from '../run/result.ts'

export type Size = 'full' | 'medium' | 'quick'

/** A column of a table. */
export interface System {
  /** Unique in a table. */
  name: string
  label: string
  isKeycast: boolean
  /** Shown, and left out of the ratio. */
  isAside?: boolean
  /** Of the load test, to start it. */
  args: string[]
}

/** A figure that is shown of each run. */
export interface Measure {
  name: string
  /** With its unit. */
  label: string
  /** The ratio is left out without it. */
  better?: 'higher' | 'lower'
  of: (result: Result) => number | undefined
}

/** A workload. `args` is undefined where it is not run against a system. */
export interface Row {
  label: string
  /** What the document says, by the measure's name. */
  published?: Record<string, string>
  /** Of the load test. */
  args: (system: System) => string[] | undefined
  /** That a run takes without start and end, roughly. */
  seconds: (system: System) => number
}

export interface Table {
  /** In file names. */
  name: string
  title: string
  /** References first. */
  systems: System[]
  measures: Measure[]
  rows: Row[]
  notes?: string[]
}

/** A run that is over. `failure`: why there is no result. */
export interface Run {
  seed: string
  table: string
  row: string
  system: string
  command: string
  result?: Result
  failure?: string
}

/** A table with its runs. */
export interface Measured {
  table: Table
  runOf: (row: Row, system: System) => Run | undefined
}

export interface Seed {
  id: string
  title: string
  /** Who published it, and the machine of its figures. */
  source: string
  /** The workload, and how it is run here. */
  about: string
  tables: (size: Size) => Table[]
  /** In the order of {@link tables} */
  charts: (measured: Measured[]) => Chart[]
}
