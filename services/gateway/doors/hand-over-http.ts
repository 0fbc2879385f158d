// PUT and DELETE /v1/values/{key}, and POST /v1/values for many: a backend hands its values over, so that it need not be
// asked for them.
import type { Backbone, HandedOver, Taken } from '@keycast/backbone'
import { namespaceOf, type Problem, problemText } from '@keycast/protocol'
import { addScope, readContent, type ValueNamespaces, type World } from '@keycast/service'
import { HANDED_OVER_BYTES_MAX, type Line, linesOf, readLine } from '@keycast/service/hand-over'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Guard } from './http/guard.ts'
import { keyOf, queryProblem } from './http/key-in-path.ts'
import { type HttpProblem, sendProblem } from './http/problems.ts'

/** A dead node is noticed within 4 s; then the value goes to the key's next owner. */
const DEADLINE_MS = 5_000

const BATCH_BYTES_MAX = 8 * 2 ** 20
const LINES_MAX = 10_000

/** Sessions have their turn after so many lines. */
const LINES_PER_TURN = 100

/** A body may be wrong in every line: the first few problems say enough. */
const PROBLEMS_MAX = 10

interface Deps extends Pick<World, 'turn'> {
  guard: Guard
  gate: { operator(of: 'value', key: string): Problem | undefined; takesQuery(key: string): boolean }
  namespaces: ValueNamespaces
  backbone: Pick<Backbone, 'handOver'>
}

type Refused = HttpProblem & { status?: number }

export function addHandOver(calls: FastifyInstance, { guard, gate, namespaces, backbone, turn }: Deps) {
  addScope(calls, 'values', async scope => {
    // The body is the value, whatever its type is.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => done(null, body))
    const call = guard.call('put')

    scope.put('/v1/values/*', { bodyLimit: HANDED_OVER_BYTES_MAX, ...call }, async (request, reply) => {
      const { headers } = request
      if (isCoded(headers)) return refuse(reply, coded)
      return handOver(request, reply, key => readValue(key, bodyOf(request), { contentType: headers['content-type'] }))
    })

    scope.delete('/v1/values/*', call, async (request, reply) => handOver(request, reply, () => undefined))

    scope.post('/v1/values', { bodyLimit: BATCH_BYTES_MAX, ...call }, async (request, reply) => {
      if (isCoded(request.headers)) return refuse(reply, coded)
      const read = await readBatch(bodyOf(request))
      if ('problems' in read) return refuse(reply, { code: 'bad_request', message: 'nothing was changed', ...read })
      const { values, numbers } = read
      const ends = await Promise.all(values.map(value => backbone.handOver(value, { deadlineMs: DEADLINE_MS })))
      return sendEnds(reply, ends, numbers)
    })
  })

  async function handOver(
    request: FastifyRequest,
    reply: FastifyReply,
    contentOf: (key: string) => HandedOver['content'] | Refused,
  ) {
    const key = keyOf(request)
    const problem = keyProblem(key) ?? queryProblem(request, key, gate)
    if (problem) return refuse(reply, problem)
    const content = contentOf(key)
    if (content && 'code' in content) return refuse(reply, content)
    const rank = rankOf(request.headers['keycast-order'])
    if (rank === 'none') {
      return refuse(reply, { code: 'bad_request', message: 'Keycast-Order must be a whole number: 0 to 2^53 - 1' })
    }
    const taken = await backbone.handOver({ key, content, rank }, { deadlineMs: DEADLINE_MS })
    if ('code' in taken) return refuse(reply, taken)
    if (taken.outcome === 'older') return { key, taken: false, order: taken.rank }
    return { key, taken: true, version: content?.version }
  }

  function keyProblem(key: string): Problem | undefined | Refused {
    const problem = gate.operator('value', key)
    if (problem || !namespaces.get(namespaceOf(key))?.isPerUser) return problem
    return { code: 'bad_request', message: 'each user has another value of this key: call POST /v1/refresh' }
  }

  /** @param key of a namespace of values */
  function readValue(
    key: string,
    received: Buffer,
    { contentType, isParsed }: { contentType: string | undefined; isParsed?: boolean },
  ): HandedOver['content'] | Refused {
    const bytesMax = Math.min(namespaces.get(namespaceOf(key))?.bytesMax ?? 0, HANDED_OVER_BYTES_MAX)
    const read = readContent(received, { contentType, version: undefined, bytesMax, isParsed })
    if (read.kind === 'value') return read
    const { code, message } = read as Extract<typeof read, { kind: 'failed' }>
    // It is the request that cannot be used, not a backend's answer (RFC 9110 section 15.5.14).
    return code === 'too_large' ? { code, message, status: 413 } : { code: 'bad_request', message }
  }

  /** All of it is read before any of it is handed over. */
  async function readBatch(
    body: Buffer,
  ): Promise<{ values: HandedOver[]; numbers: number[] } | { problems: string[] }> {
    const lines = linesOf(body, LINES_MAX)
    if (!lines?.length) return { problems: ['the body must be lines of JSON in UTF-8, as in {"key":K,"value":V}'] }
    if (lines.length > LINES_MAX) return { problems: [`at most ${LINES_MAX} lines may be sent at once`] }
    const values: HandedOver[] = []
    const problems: string[] = []
    for (const [index, each] of lines.entries()) {
      if (index % LINES_PER_TURN === LINES_PER_TURN - 1) await new Promise<void>(turn)
      const line = readLine(each)
      const value = 'problem' in line ? line.problem : handedOverBy(line)
      if (typeof value !== 'string') values.push(value)
      else problems.push(`line ${each.number}: ${value}`)
      if (problems.length === PROBLEMS_MAX) break
    }
    return problems.length > 0 ? { problems } : { values, numbers: lines.map(({ number }) => number) }
  }

  /** @returns a text, if it cannot be handed over */
  function handedOverBy({ key, bytes, contentType, isJson, rank }: Line): HandedOver | string {
    const problem = keyProblem(key)
    if (problem) return textOf(problem)
    const content = bytes && readValue(key, bytes, { contentType, isParsed: isJson })
    return content && 'code' in content ? textOf(content) : { key, content, rank }
  }
}

/** @param numbers of the lines that the ends are of */
function sendEnds(reply: FastifyReply, ends: Taken[], numbers: number[]) {
  const older: { line: number; order: number }[] = []
  const lines: number[] = []
  let failure: Problem | undefined
  for (const [index, end] of ends.entries()) {
    if ('code' in end) {
      failure ??= end
      lines.push(numbers[index])
    } else if (end.outcome === 'older') older.push({ line: numbers[index], order: end.rank })
  }
  if (failure) return sendProblem(reply, { ...failure, lines })
  return reply.send({ taken: ends.length - older.length, older })
}

const refuse = (reply: FastifyReply, { status, ...problem }: Refused) => sendProblem(reply, problem, status)

const bodyOf = ({ body }: FastifyRequest) => (Buffer.isBuffer(body) ? body : Buffer.alloc(0))

const isCoded = ({ 'content-encoding': coding = 'identity' }: FastifyRequest['headers']) => coding !== 'identity'

const coded: Refused = { code: 'bad_request', message: 'send the body without Content-Encoding' }

const textOf = ({ code, message }: Refused) => problemText({ code, message } as Problem)

function rankOf(header: string | string[] | undefined): number | undefined | 'none' {
  if (header === undefined) return undefined
  const rank = typeof header === 'string' && /^\d{1,16}$/.test(header) ? Number(header) : Number.NaN
  return Number.isSafeInteger(rank) ? rank : 'none'
}
