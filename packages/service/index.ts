// The parts that every service needs: settings, log, shutdown. A part that loads a large library (HTTP server, metrics,
// YAML) is imported by a path of its own: a fetcher's workers would load all of them at each start and use none.
export { createLoads } from './accounts/loads.ts'
export { accountsOf, createPayers, isPayer, type Payer } from './accounts/payer.ts'
export { createPlaces } from './accounts/places.ts'
export { createStock, type Holder, SHARE_TAKEN, type Stock, weightOf } from './accounts/stock.ts'
export { ANSWER_GRACE_MS } from './answer-grace.ts'
export { backoffMs } from './backoff.ts'
export { BEAT_MS, createAwakeClock, SILENT_MS } from './beats.ts'
export { type Calendar, createCalendar, SWEEP_MS } from './collections/calendar.ts'
export { createFairQueue, type FairQueue, type LanePath, NO_LANE } from './collections/fair-queue.ts'
export { createFifo } from './collections/fifo.ts'
export { addIndexed, removeIndexed } from './collections/indexed-list.ts'
export { createRecent, createUniqueQueue, type UniqueQueue } from './collections/recent.ts'
export { createTurns, FLOW_MS, TURN_MS, workTurn } from './collections/turns.ts'
export { createConfiguration } from './configuration.ts'
export { type Containment, createContainment, noContainment } from './containment.ts'
export {
  type Content,
  type Format,
  isJsonType,
  jsonProblem,
  type ReadValue,
  readContent,
  withoutBom,
} from './content.ts'
export { detached } from './detached-bytes.ts'
export { readVariable, withoutLineBreak } from './environment.ts'
export { addScope, noSchemas } from './fastify-start.ts'
export { fullness } from './fullness.ts'
export { answerErrors, type Problem } from './http-errors.ts'
export { dateOf, type Headers, readHttpDate, readSeconds, retryAfterMsOf } from './http-times.ts'
export { readListenProblem } from './listen-problem.ts'
export { createLog, type Log } from './log.ts'
export type { MetricMakers } from './metrics/metrics.ts'
export { createHistogram } from './metrics/series.ts'
export { Misconfigured } from './misconfigured.ts'
export { bySource, needsJournal } from './namespaces/by-source.ts'
export { idProblem, roomIdProblem, roomProblem } from './namespaces/id-problem.ts'
export type { AskBefore, JournalNamespace } from './namespaces/journal-schema.ts'
export { headersOfKey } from './namespaces/key-headers.ts'
export { createLiveNamespaces, type LiveNamespaces, type NamespaceChanges } from './namespaces/live.ts'
export type {
  AllNamespaces,
  AnyNamespace,
  Authorize,
  Batch,
  Deciding,
  JournalNamespaces,
  Named,
  Namespace,
  Namespaces,
  PushedNamespaces,
  ReadNamespaces,
  ServiceToken,
  ValueNamespace,
  ValueNamespaces,
} from './namespaces/namespaces.ts'
export type { Notify, RoomsNotify } from './namespaces/notify-schema.ts'
export type { PushedNamespace } from './namespaces/pushed-schema.ts'
export { callsRoom, RESERVED_PREFIX, revocationsRoom, withReserved } from './namespaces/reserved.ts'
export { substituteVariables } from './namespaces/variables.ts'
export { http } from './node-http.ts'
export { createOnceAMinute } from './once-a-minute.ts'
export { duration } from './quantities.cjs'
export { runService } from './run.ts'
export { type Config, common, type Profile, readSettings, setting } from './settings/settings.ts'
export { type Every, realWorld, type World } from './world.ts'
