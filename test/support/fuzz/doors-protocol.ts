// Doors: what clients and backends send to gateways, as far as it is read without a gateway.
import {
  isUser,
  keyProblem,
  ProtocolError,
  readClientMessage,
  readHistoryQuery,
  readMemberName,
  readPublishFields,
  readRequestId,
} from '@keycast/protocol'
import fc from 'fast-check'
import { absurdJson, absurdText } from './absurd.ts'
import type { AnyDoor, Door } from './judge.ts'
import { requests } from './messages.ts'

const text = (name: string, valid: string[], take: (text: string) => unknown): Door<string> => ({
  name,
  inputs: absurdText(valid),
  take,
  errors: [ProtocolError],
})

export const protocolDoors: AnyDoor[] = [
  {
    name: "a client's message",
    inputs: absurdJson(requests).map(({ text }) => text),
    take(message: string) {
      readRequestId(message)
      readClientMessage(message)
    },
    errors: [ProtocolError],
  },
  {
    name: "a backend's publish",
    inputs: absurdJson([
      ['publish', { key: 'room:42', from: 'ann', messageId: 'q2VbR0cJmZC0yqk3', data: { text: 'Good morning' } }],
    ]).map(({ text }) => text),
    take: readPublishFields,
    errors: [ProtocolError],
  },
  text('a query for a history', ['epoch=q3kV7bTn&before=118&limit=20', 'after=0'], query =>
    readHistoryQuery('room:42', Object.fromEntries(new URLSearchParams(query))),
  ),
  {
    name: 'keys and names',
    inputs: fc.oneof(
      absurdText(['conversation:42', 'doc:a/b/c']),
      absurdText(['Ann', 'Jos\u00e9 \ud83d\udc69\u200d\ud83d\ude80']),
    ),
    take(text: string) {
      keyProblem(text)
      readMemberName(text)
      isUser(text)
    },
  },
]
