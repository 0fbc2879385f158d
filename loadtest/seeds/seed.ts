// The type of a seed: one of the five documents this project started from, as tables of runs. Each run is a command line of
// the load test, so that a reader can repeat it alone.

/**
 * @typedef {'full' | 'medium' | 'quick'} Size
 *
 * A column of a table.
 * @typedef {object} System
 * @property {string} name unique in a table
 * @property {string} label
 * @property {boolean} isKeycast
 * @property {boolean} [isAside] shown, and left out of the ratio
 * @property {string[]} args of the load test, to start it
 *
 * A figure that is shown of each run.
 * @typedef {object} Measure
 * @property {string} name
 * @property {string} label with its unit
 * @property {'higher' | 'lower'} [better] the ratio is left out without it
 * @property {(result: import('../run/result.ts').Result) => number | undefined} of
 *
 * A workload. `args` is undefined where it is not run against a system.
 * @typedef {object} Row
 * @property {string} label
 * @property {Record<string, string>} [published] what the document says, by the measure's name
 * @property {(system: System) => string[] | undefined} args of the load test
 * @property {(system: System) => number} seconds that a run takes without start and end, roughly
 *
 * @typedef {object} Table
 * @property {string} name in file names
 * @property {string} title
 * @property {System[]} systems references first
 * @property {Measure[]} measures
 * @property {Row[]} rows
 * @property {string[]} [notes]
 *
 * A run that is over. `failure`: why there is no result.
 * @typedef {{ seed: string, table: string, row: string, system: string, command: string,
 *   result?: import('../run/result.ts').Result, failure?: string }} Run
 *
 * @typedef {object} Measured a table with its runs
 * @property {Table} table
 * @property {(row: Row, system: System) => Run | undefined} runOf
 *
 * @typedef {import('../report/seeds/draw.ts').Chart} Chart
 *
 * @typedef {object} Seed
 * @property {string} id
 * @property {string} title
 * @property {string} source who published it, and the machine of its figures
 * @property {string} about the workload, and how it is run here
 * @property {(size: Size) => Table[]} tables
 * @property {(measured: Measured[]) => Chart[]} charts in the order of {@link tables}
 */

export {}
