// Checks after every end-to-end test file: no process, socket or directory outlives it, no viewer was sent an older
// value, and no viewer holds other bytes than its version names.
import { jest } from '@jest/globals'
import { cleanUp } from './cleanup.ts'
import { assertNobodyMisled, assertNobodyWentBack } from './client.ts'
import { killServices, showLogs } from './processes.ts'

// Called by environment.ts, which lives in another realm and can import nothing of this one.
const fromSetup = { cleanUp, killServices, showServiceLogs: showLogs }
export type FromSetup = typeof fromSetup

Object.assign(globalThis, fromSetup)

// Far above what a test takes: what never comes is named by the wait for it (deadline.ts), not by jest.
jest.setTimeout(120_000)

afterEach(assertNobodyWentBack)
afterEach(assertNobodyMisled)
