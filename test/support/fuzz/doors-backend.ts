// Doors: what a backend answers, from its bytes up to what a node keeps of it.

import { gzipSync } from 'node:zlib'
import { realWorld } from '@keycast/service'
import fc from 'fast-check'
import { readRuling } from '../../../services/fetcher/primary/rulings/read-ruling.ts'
import { setup } from '../../../services/fetcher/primary/test-support.ts'
import { createAsker } from '../../../services/fetcher/worker/ask.ts'
import { createDeltas } from '../../../services/fetcher/worker/deltas.ts'
import { createConnections } from '../../../services/fetcher/worker/http/connections.ts'
import { createPuller } from '../../../services/fetcher/worker/pull.ts'
import { decodeFromWorker, encodeWork } from '../../../services/fetcher/worker-messages.ts'
import { atEnd } from '../cleanup.ts'
import { absurdBytes, absurdJson, type Named } from './absurd.ts'
import { absurdHttp, type HttpMessage, written } from './absurd-http.ts'
import { serveBytes } from './doors-access.ts'
import type { AnyDoor } from './judge.ts'
import { lease } from './messages.ts'

const content = { title: 'Good morning', revision: 7, parts: [{ text: 'a'.repeat(200) }], filler: 'b'.repeat(200) }
const json = Buffer.from(JSON.stringify(content))

const fields: [name: string, value: string][] = [
  ['content-type', 'application/json; charset=utf-8'],
  ['cache-control', 'max-age=60, s-maxage="30", stale-while-revalidate=5'],
  ['etag', 'W/"e1"'],
  ['last-modified', 'Mon, 01 Jan 2024 00:00:00 GMT'],
  ['date', 'Tue, 02 Jan 2024 00:00:00 GMT'],
  ['expires', 'Wed, 03 Jan 2024 00:00:00 GMT'],
  ['age', '5'],
  ['retry-after', '7'],
  ['vary', 'accept'],
]
const type = (value: string) =>
  fields.map(([name, old]): [string, string] => [name, name === 'content-type' ? value : old])

/** What a backend may well answer. */
export const responses: Named<HttpMessage>[] = [
  ['JSON', { first: 'HTTP/1.1 200 OK', fields, body: json }],
  [
    'text',
    {
      first: 'HTTP/1.1 200 OK',
      fields: type('text/plain; charset=windows-1252'),
      body: Buffer.from('Gr\u00fc\u00dfe', 'latin1'),
    },
  ],
  [
    'UTF-16',
    {
      first: 'HTTP/1.1 200 OK',
      fields: type('text/html; charset=utf-16le'),
      body: Buffer.from('Gr\u00fc\u00dfe', 'utf16le'),
    },
  ],
  ['bytes', { first: 'HTTP/1.1 200 OK', fields: type('image/png'), body: Buffer.from([1, 2, 255, 0]) }],
  ['gzip', { first: 'HTTP/1.1 200 OK', fields: [...fields, ['content-encoding', 'gzip']], body: gzipSync(json) }],
  ['304', { first: 'HTTP/1.1 304 Not Modified', fields, body: Buffer.alloc(0) }],
  ['404', { first: 'HTTP/1.1 404 Not Found', fields, body: json }],
  ['503', { first: 'HTTP/1.1 503 Service Unavailable', fields, body: json }],
]

export const firsts = [
  ...[
    0, 99, 100, 101, 103, 199, 201, 204, 205, 206, 226, 299, 300, 301, 307, 400, 401, 403, 410, 418, 429, 500, 599, 600,
    999,
  ].map(status => `HTTP/1.1 ${status} So`),
  'HTTP/1.1 1e2 OK',
  'HTTP/1.1 -200 OK',
  'HTTP/1.1',
  'HTTP/0.9 200 OK',
  'HTTP/2 200 OK',
  'http/1.1 200 ok',
  '',
  'HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK',
  `${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(1_000)}HTTP/1.1 200 OK`,
  `HTTP/1.1 200 ${'O'.repeat(50_000)}`,
  'HTTP/1.1 200 \u0000',
]

const bodies = fc.oneof(
  absurdJson([['content', content]]),
  absurdBytes(responses.filter(([, { body }]) => body.length > 0).map(([name, { body }]) => [name, body])),
)

const anyResponse = fc.oneof(
  { weight: 2, arbitrary: absurdHttp(responses, firsts).map(({ bytes }) => bytes) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...responses), bodies)
      .map(([[, response], { bytes: body }]) => written({ ...response, body })),
  },
)

export async function backendDoors(): Promise<AnyDoor[]> {
  const backend = await serveBytes()
  const connections = createConnections(realWorld)
  atEnd(() => connections.close())
  const puller = createPuller({ ...realWorld, connections })
  const asker = createAsker({ ...realWorld, connections })
  const deltas = createDeltas({ ...realWorld, bytesMax: 2 ** 20 })
  const node = setup({ namespaces: { conversation: {} } })
  node.watch('link', lease.key)
  const asked = { ...lease, url: `http://127.0.0.1:${backend.port}/conversations/42`, timeoutMs: 5_000 }
  let version: string | undefined

  return [
    {
      name: "a backend's response",
      inputs: anyResponse,
      /** Its whole way: to a worker, from there to the primary, and into what that holds. */
      async take(response: Buffer) {
        backend.answerWith(response)
        const own = { ...asked, version, etag: version && '"e"' } as typeof asked
        const { result, body } = await puller.pull(own)
        const { delta } = result.kind === 'value' && body ? deltas.make(own, result, body) : {}
        const message = { type: 'result' as const, lease: 1, ...result, ...(delta && { deltaFrom: version }) }
        const [read] = decodeFromWorker(encodeWork([{ message, body, delta }]))
        while (node.leased().length === 0) node.pass(1_000)
        node.answer(lease.key, read.message as typeof message, read.body, read.delta)
        node.take('link')
        version = result.kind === 'value' ? result.version : version
      },
    },
    {
      name: "a backend's verdict",
      inputs: anyResponse,
      async take(response: Buffer) {
        backend.answerWith(response)
        for (const statusOf of ['HEAD', 'GET'] as const) {
          const { result } = await asker.ask({ ...asked, statusOf })
          decodeFromWorker(encodeWork([{ message: { type: 'result', lease: 1, ...result } }]))
        }
      },
    },
    {
      name: "a backend's word on a message",
      inputs: anyResponse,
      async take(response: Buffer) {
        backend.answerWith(response)
        const { result, body } = await asker.ask({ ...asked, statusOf: 'POST' }, Buffer.from('{}'))
        const [read] = decodeFromWorker(encodeWork([{ message: { type: 'result', lease: 1, ...result }, body }]))
        const { status } = result as { status?: number }
        readRuling({ status, message: '', sentAt: 0, retryAfterMs: undefined, body: read.body }, 100)
      },
    },
  ]
}
