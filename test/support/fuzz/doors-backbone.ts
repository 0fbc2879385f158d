// Doors: messages between gateways, nodes and workers, as far as they are read without any of them.
import { readHistoryKey, readPresenceKey, readViewerKey, roomsCodec } from '@keycast/backbone'
import { WireError } from '../../../packages/backbone/wire/codec.ts'
import { decodeBeat, decodeFromHub, decodeRequest } from '../../../packages/backbone/wire/envelope.ts'
import { valuesCodec } from '../../../packages/backbone/wire/values-codec.ts'
import { decodeFromWorker, decodeLeases, WorkError } from '../../../services/fetcher/worker-messages.ts'
import type { Absurd, Named } from './absurd.ts'
import { absurdParts, absurdText } from './absurd.ts'
import type { AnyDoor } from './judge.ts'
import { fromFetcher, fromJournal, leases, toFetcher, toJournal, workerMessages } from './messages.ts'

const parts = (
  name: string,
  valid: Named<Buffer[]>[],
  errors: AnyDoor['errors'],
  decode: (parts: Buffer[]) => unknown,
): AnyDoor => ({ name, inputs: absurdParts(valid), take: ({ parts }: Absurd) => decode(parts), errors })

export const backboneDoors: AnyDoor[] = [
  parts('a request to a fetcher', toFetcher.requests, [WireError], given => decodeRequest(given, valuesCodec)),
  parts('a request to a journal', toJournal.requests, [WireError], given => decodeRequest(given, roomsCodec)),
  parts('a beat of a gateway', [...toFetcher.beats, ...toJournal.beats], [WireError], ([part = Buffer.alloc(0)]) => {
    decodeBeat(part, valuesCodec.wire)
    decodeBeat(part, roomsCodec.wire)
  }),
  parts('a message of a fetcher', fromFetcher, [WireError], given => decodeFromHub(given, valuesCodec)),
  parts('a message of a journal', fromJournal, [WireError], given => decodeFromHub(given, roomsCodec)),
  {
    name: 'keys of the backbone',
    inputs: absurdText([
      'conversation:42 anonymous',
      'room:42 - before 900 50',
      'room:42 join dGFi',
      'room:42 members',
    ]),
    take(key: string) {
      readViewerKey(key)
      readHistoryKey(key)
      readPresenceKey(key)
    },
  },
  parts('leases to a worker', leases, [WorkError], decodeLeases),
  parts('a message of a worker', workerMessages, [WorkError], decodeFromWorker),
]
