// Absurd messages at every door that reads what others wrote, in this process. An hour of it, with a seed that is
// printed: FUZZ_SECONDS=3600 npm run test:e2e -- --testPathPatterns fuzz
import { readClientMessage } from '@keycast/protocol'
import { decodeBeat, decodeFromHub, decodeRequest } from '../../packages/backbone/wire/envelope.ts'
import { roomsCodec } from '../../packages/backbone/wire/rooms-codec.ts'
import { valuesCodec } from '../../packages/backbone/wire/values-codec.ts'
import { decodeFromWorker, decodeLeases } from '../../services/fetcher/worker-messages.ts'
import { accessDoors } from '../support/fuzz/doors-access.ts'
import { backboneDoors } from '../support/fuzz/doors-backbone.ts'
import { backendDoors } from '../support/fuzz/doors-backend.ts'
import { clientDoors } from '../support/fuzz/doors-client.ts'
import { configurationDoors } from '../support/fuzz/doors-configuration.ts'
import { gatewayDoors } from '../support/fuzz/doors-gateway.ts'
import { hubDoors } from '../support/fuzz/doors-hubs.ts'
import { nodeDoors } from '../support/fuzz/doors-node.ts'
import { protocolDoors } from '../support/fuzz/doors-protocol.ts'
import { judge } from '../support/fuzz/judge.ts'
import { seconds, seed, timeoutMs } from '../support/fuzz/length.ts'
import {
  documented,
  fromFetcher,
  fromJournal,
  leases,
  requests,
  serverBytes,
  serverMessages,
  toFetcher,
  toJournal,
  workerMessages,
} from '../support/fuzz/messages.ts'

const doors = [
  ...protocolDoors,
  ...backboneDoors,
  ...configurationDoors(),
  ...(await accessDoors()),
  ...(await backendDoors()),
  ...(await gatewayDoors()),
  ...nodeDoors,
  ...hubDoors,
  ...clientDoors,
]

test('it begins with every message of the protocol, and what it begins with is valid', () => {
  const names = [...requests, ...serverMessages, ...serverBytes].map(([name]) => name.split(' ')[0])
  expect([...new Set(names)].sort()).toEqual(Object.keys(documented).sort())
  for (const [name, request] of requests) {
    // This sample has every field, and of these two a request may have one.
    if (name !== 'history')
      expect(readClientMessage(JSON.stringify(request))).toMatchObject({ type: name.split(' ')[0] })
  }
  for (const [of, codec] of [
    [toFetcher, valuesCodec],
    [toJournal, roomsCodec],
  ] as const) {
    for (const [, parts] of of.requests) expect(decodeRequest(parts, codec as never).body.type).not.toBe('unknown')
    for (const [name, [beat]] of of.beats) expect(decodeBeat(beat, codec.wire).type).toBe(name)
  }
  for (const [said, codec] of [
    [fromFetcher, valuesCodec],
    [fromJournal, roomsCodec],
  ] as const) {
    for (const [, parts] of said)
      expect(JSON.stringify(decodeFromHub(parts, codec as never))).not.toMatch(/incompatible|null/)
  }
  for (const [, parts] of leases) expect(decodeLeases(parts)).not.toEqual([])
  for (const [, parts] of workerMessages) expect(decodeFromWorker(parts)).not.toEqual([])
})

test.each(doors.map(door => [door.name, door] as const))(
  '%s: whatever it is given, it takes it or says what is wrong',
  async (_, door) => {
    expect(await judge(door, { seconds: seconds / doors.length, seed })).toBeGreaterThan(0)
  },
  timeoutMs,
)
