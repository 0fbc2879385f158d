// Checks after every end-to-end test file: no process, socket or directory outlives it, no viewer was sent an older
// value, and no viewer holds other bytes than its version names.
import { cleanUp } from './cleanup.ts'
import { assertNobodyMisled, assertNobodyWentBack } from './client.ts'
import { killServices, showLogs } from './processes.ts'

// Called by environment.ts, which lives in another realm and can import nothing of this one.
const fromSetup = { cleanUp, killServices, showServiceLogs: showLogs }
export type FromSetup = typeof fromSetup

Object.assign(globalThis, fromSetup)

afterEach(assertNobodyWentBack)
afterEach(assertNobodyMisled)
