// What holds for every end-to-end test file: no process, socket or directory outlives it, no viewer ever went back.

import { cleanUp } from './cleanup.js'
import { assertNobodyWentBack, closeClients } from './client.js'
import { showLogs } from './processes.js'

// Called by environment.js, which lives in another realm and can import nothing of this one.
Object.assign(globalThis, { showServiceLogs: showLogs })

afterEach(assertNobodyWentBack)
afterAll(async () => {
  closeClients()
  await cleanUp()
})
