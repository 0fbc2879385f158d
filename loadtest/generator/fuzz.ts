// A process that sends absurd bytes to all that strangers reach of a gateway, from the first message of its parent to the
// second.
// node loadtest/generator/fuzz.ts ws://127.0.0.1:8080/ws 127.0.0.202
import { once } from 'node:events'
import { BYTES_SUBPROTOCOL, JSON_SUBPROTOCOL } from '@keycast/protocol'
import { seed } from '../../test/support/fuzz/length.ts'
import { fuzzPorts } from '../../test/support/fuzz/open-ports.ts'

/** To make absurd bytes takes CPU time that the system under load would have. */
const PACE_MS = 50

const [url, from] = process.argv.slice(2)
let isOn = true
process.on('disconnect', () => process.exit())
process.send?.('ready')
await once(process, 'message')
process.once('message', () => {
  isOn = false
})

const ports = fuzzPorts({ url, from, isOn: () => isOn, paceMs: PACE_MS })
const counts = await Promise.all([
  ports.sessions(JSON_SUBPROTOCOL),
  ports.sessions(BYTES_SUBPROTOCOL),
  ports.frames(),
  ports.tokens(),
  ports.requests('clients'),
])
process.send?.({ sent: counts.reduce((sum, count) => sum + count, 0), seed }, () => process.exit())
