// The parts that every service needs: settings, log, shutdown. A part that loads a large library (HTTP server, metrics,
// YAML) is imported by a path of its own: a fetcher's workers would load all of them at each start and use none.
export { BEAT_MS, everyInterval, everyMeasured, SILENT_MS } from './beats.ts'
export { ANSWER_GRACE_MS } from './deadlines.ts'
export { detached } from './detached-bytes.ts'
export { readVariable, withoutLineBreak } from './environment.ts'
export { answerErrors } from './http-errors.ts'
export { readListenProblem } from './listen-problem.ts'
export { createLog } from './log.ts'
export { createFastHistogram } from './metrics/fast-histogram.ts'
export { Misconfigured } from './misconfigured.ts'
export { idProblem } from './namespaces/id-problem.ts'
export { revocationsRoom, withReserved } from './namespaces/reserved.ts'
export { valuesAndRooms } from './namespaces/values-and-rooms.ts'
export { substituteVariables } from './namespaces/variables.ts'
export { createOnceAMinute } from './once-a-minute.ts'
export { duration } from './quantities.cjs'
export { runService } from './run.ts'
export { common, readSettings, SettingsError, setting } from './settings/settings.ts'
export { createTurns, TURN_MS } from './turns.ts'
export { createUniqueQueue } from './unique-queue.ts'

/**
 * @typedef {import('./beats.ts').Every} Every
 * @typedef {import('./log.ts').Log} Log
 * @typedef {import('./metrics/metrics.ts').Metrics} Metrics
 * @typedef {import('./metrics/fast-histogram.ts').FastHistogram} FastHistogram
 * @typedef {import('./metrics/fast-histogram.ts').FastHistogramSeries} FastHistogramSeries
 * @typedef {import('./internal-server.ts').InternalServer} InternalServer
 * @typedef {import('./http-errors.ts').Problem} Problem
 * @typedef {import('./namespaces/journal-schema.ts').JournalNamespace} JournalNamespace
 * @typedef {import('./namespaces/namespaces.ts').JournalNamespaces} JournalNamespaces
 * @typedef {import('./namespaces/namespaces.ts').Authorize} Authorize
 * @typedef {import('./namespaces/namespaces.ts').Deciding} Deciding
 * @typedef {import('./namespaces/namespaces.ts').Namespace} Namespace
 * @typedef {import('./namespaces/namespaces.ts').Namespaces} Namespaces
 */

/**
 * @template T
 * @typedef {import('./unique-queue.ts').UniqueQueue<T>} UniqueQueue
 */

/**
 * @template {Record<string, import('./settings/settings.ts').Setting<any>>} S
 * @typedef {import('./settings/settings.ts').Config<S>} Config
 */
