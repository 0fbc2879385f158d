// The type of a scenario: its inputs from a run, and its results.

/**
 * @typedef {object} Scenario
 * @property {string} name the word on the command line
 * @property {string} about one sentence
 * @property {(command: import('commander').Command) => void} addOptions its own, beside those all have
 * @property {(options: any) => string | undefined} [problem] options that do not go together
 * @property {(options: any) => import('../system/start.ts').Content} content the content that a system started for it
 *   serves
 * @property {number} [gateways] the gateways of a system started for it, unless given; else as many as the clients need
 * @property {(options: any) => number} clients how many at most: processes, gateways and source addresses follow from
 *   it
 * @property {{ count: string, label: string }[]} rates counts of the series that make the throughput chart, the one
 *   that is shown as it goes first
 * @property {string[]} [references] the reference programs that it can run against; `bare` and `naive` unless said
 * @property {boolean} [needsProvider] whether it asks the backend itself
 * @property {boolean} [needsTokens] whether its clients bring tokens also without --token
 * @property {(context: Context, options: any) => Promise<Outcome>} run
 *
 * The means that a run gives its scenario.
 * @typedef {object} Context
 * @property {import('../system/start.ts').System} target
 * @property {(load: Omit<import('../generator/pool.ts').PoolOptions, 'urls' | 'onSecond' | 'processes'> &
 *   { urls?: string[], processes?: number, onSecond?: (second: SeriesSecond, histograms: Record<string, import('../generator/histogram.ts').Histogram>) => void, aside?: boolean })
 *   => Promise<import('../generator/pool.ts').Pool>} startPool its seconds become the run's series, unless it is `aside`.
 *   Its clients bring tokens where the run's do, unless `signing` says otherwise; `settings` are given the dialect that
 *   the system speaks
 * @property {import('../system/watcher.ts').Watcher} watcher
 * @property {SeriesSecond[]} series
 * @property {(name: string) => void} phase names the part of the run to which the coming seconds belong
 * @property {(condition: () => boolean, msMax: number) => Promise<boolean>} until waits until a condition holds (true),
 *   the time is over or the run is to end
 * @property {(ms: number) => Promise<boolean>} wait false where the run is to end
 * @property {() => EndedBy | undefined} ended the reason to end the run early, if there is one
 * @property {(text: string) => void} say a line for the person watching
 *
 * Why a run ended: it was done, Ctrl-C, its time was over, or a process died.
 * @typedef {'done' | 'interrupted' | 'time' | 'died'} EndedBy
 *
 * One second of a run. Figures are of that second alone, `open` at its end.
 * @typedef {object} SeriesSecond
 * @property {number} at seconds since the run began
 * @property {string} phase
 * @property {number} open clients connected
 * @property {number} connecting
 * @property {Record<string, number>} counts
 * @property {import('../generator/histogram.ts').LatencySummary | undefined} latency
 * @property {import('../generator/pool.ts').Second['generator']} generator
 * @property {number} seconds the sample of the services spans
 * @property {number} [freeBytes]
 * @property {number} [cpuBusyRatio]
 * @property {import('../system/watcher.ts').ServiceSample[]} services
 *
 * A figure a run is about.
 * @typedef {object} Figure
 * @property {string} label
 * @property {number | undefined} value undefined where it could not be measured
 * @property {string} unit
 * @property {'higher' | 'lower'} [better]
 * @property {string} [note] the limit that it is compared with
 *
 * @typedef {{ title: string, columns: string[], rows: (string | number)[][], note?: string, bars?: Bars[] }} Table
 * @typedef {{ column: number, title: string, log?: boolean }} Bars a column that the report shows as bars, too
 *
 * An equation that must hold if nothing was miscounted.
 * @typedef {{ text: string, holds: boolean }} Sum
 *
 * @typedef {object} Outcome
 * @property {string} headline one sentence: what was found
 * @property {Record<string, Figure>} figures the most telling ones first
 * @property {Record<string, number>} counts
 * @property {Sum[]} sums
 * @property {import('../generator/histogram.ts').Histogram} [latency]
 * @property {string} [latencyLabel] the name of the measured latency
 * @property {Record<string, number>} [reasons] the reasons of refusals or losses
 * @property {SeriesSecond[]} [measured] the seconds the figures come from, for telling whose limit they are
 * @property {Table[]} [tables]
 * @property {string[]} [notes]
 */

export {}
