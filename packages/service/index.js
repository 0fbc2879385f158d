// What every main needs, once: settings, log, metrics, health, shutdown, and the namespaces of keycast.yaml.
export { BEAT_MS, everyInterval, everyMeasured, SILENT_MS } from './beats.js'
export { createInternalServer } from './internal-server.js'
export { createLog } from './log.js'
export { createMetrics } from './metrics.js'
export { NamespacesError, readNamespaces } from './namespaces.js'
export { runService } from './run.js'
export { common, readSettings, SettingsError, setting } from './settings.js'
export { createTally } from './tally.js'
export { createTurns, TURN_MS } from './turns.js'
export { createUniqueQueue } from './unique-queue.js'

/**
 * @typedef {import('./beats.js').Every} Every
 * @typedef {import('./log.js').Log} Log
 * @typedef {import('./metrics.js').Metrics} Metrics
 * @typedef {import('./internal-server.js').InternalServer} InternalServer
 * @typedef {import('./namespaces.js').Namespace} Namespace
 * @typedef {import('./namespaces.js').Namespaces} Namespaces
 */

/**
 * @template T
 * @typedef {import('./unique-queue.js').UniqueQueue<T>} UniqueQueue
 */

/**
 * @template {Record<string, import('./settings.js').Setting<any>>} S
 * @typedef {import('./settings.js').Config<S>} Config
 */
