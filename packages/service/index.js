// The parts that every service needs: settings, log, shutdown. A part that loads a large library (HTTP server, metrics,
// YAML) is imported by a path of its own: a fetcher's workers would load all of them at each start and use none.
export { BEAT_MS, everyInterval, everyMeasured, SILENT_MS } from './beats.js'
export { ANSWER_GRACE_MS } from './deadlines.js'
export { detached } from './detached-bytes.js'
export { readVariable, withoutLineBreak } from './environment.js'
export { answerErrors } from './http-errors.js'
export { readListenProblem } from './listen-problem.js'
export { createLog } from './log.js'
export { createFastHistogram } from './metrics/fast-histogram.js'
export { Misconfigured } from './misconfigured.js'
export { idProblem } from './namespaces/id-problem.js'
export { revocationsRoom, withReserved } from './namespaces/reserved.js'
export { valuesAndRooms } from './namespaces/values-and-rooms.js'
export { substituteVariables } from './namespaces/variables.js'
export { createOnceAMinute } from './once-a-minute.js'
export { duration } from './quantities.cjs'
export { runService } from './run.js'
export { common, readSettings, SettingsError, setting } from './settings/settings.js'
export { createTurns, TURN_MS } from './turns.js'
export { createUniqueQueue } from './unique-queue.js'

/**
 * @typedef {import('./beats.js').Every} Every
 * @typedef {import('./log.js').Log} Log
 * @typedef {import('./metrics/metrics.js').Metrics} Metrics
 * @typedef {import('./metrics/fast-histogram.js').FastHistogram} FastHistogram
 * @typedef {import('./metrics/fast-histogram.js').FastHistogramSeries} FastHistogramSeries
 * @typedef {import('./internal-server.js').InternalServer} InternalServer
 * @typedef {import('./http-errors.js').Problem} Problem
 * @typedef {import('./namespaces/journal-schema.js').JournalNamespace} JournalNamespace
 * @typedef {import('./namespaces/namespaces.js').JournalNamespaces} JournalNamespaces
 * @typedef {import('./namespaces/namespaces.js').Authorize} Authorize
 * @typedef {import('./namespaces/namespaces.js').Deciding} Deciding
 * @typedef {import('./namespaces/namespaces.js').Namespace} Namespace
 * @typedef {import('./namespaces/namespaces.js').Namespaces} Namespaces
 */

/**
 * @template T
 * @typedef {import('./unique-queue.js').UniqueQueue<T>} UniqueQueue
 */

/**
 * @template {Record<string, import('./settings/settings.js').Setting<any>>} S
 * @typedef {import('./settings/settings.js').Config<S>} Config
 */
