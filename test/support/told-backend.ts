// A backend that Keycast tells of its rooms, as a test has it behave. It takes nothing unsigned, and notes what it took.
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { isFromKeycast } from '@keycast/client/backend'
import { atEnd, newFolder } from './cleanup.ts'
import { freePorts } from './free-ports.ts'

const SECRET = 'the secret of a test, long enough'

interface Position {
  epoch: string
  seq: number
}

interface Told extends Position {
  messageId?: string
  data?: any
  deletes?: number[][]
}

export type ToldBackend = Awaited<ReturnType<typeof startToldBackend>>

export async function startToldBackend() {
  const folder = newFolder()
  const secretFile = join(folder, 'secret')
  writeFileSync(secretFile, `${SECRET}\n`)
  const rooms = new Map<string, Told[]>()
  const gaps: { key: string; from: Position; to: Position }[] = []
  const members = new Map<string, any>()
  const viewers: { key: string; watched: boolean }[] = []
  /** What a call is answered: a status, or nothing at all. */
  let answer: (call: any) => { status?: number; headers?: Record<string, string> } | 'nothing' = () => ({})
  let calls = 0
  let unsigned = 0

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return // cut off
    }
    calls++
    const body = Buffer.concat(chunks)
    if (!isFromKeycast(request.headers['keycast-signature'], body, SECRET)) {
      unsigned++
      response.writeHead(401).end()
      return
    }
    const call = JSON.parse(body.toString())
    const answered = answer(call)
    if (answered === 'nothing') return void response.destroy()
    const { status = 204, headers } = answered
    if (status < 300) take(call)
    response.writeHead(status, headers).end()
  })

  function take({ key, gap, messages, members: states, viewers: views }: any) {
    viewers.push(...(views ?? []))
    for (const state of states ?? []) members.set(state.key, state)
    if (gap) gaps.push({ key, ...gap })
    const told = rooms.get(key) ?? []
    if (messages) rooms.set(key, told)
    for (const message of messages ?? []) told.push(message)
  }

  const [port] = await freePorts(1) // for it may be stopped, and come back on it
  const listen = () => new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  await listen()
  const stop = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  atEnd(stop)

  return {
    /** Of a namespace, for its `notify`. A call that a busy machine makes late is not given up, and said again. */
    notify: { url: `http://127.0.0.1:${port}/told`, secretFiles: [secretFile], timeout: '20s' },
    stop,
    start: listen,
    answer(given: typeof answer) {
      answer = given
    },
    calls: () => calls,
    unsigned: () => unsigned,
    gaps,
    members,
    /** In the order in which they came. */
    viewers,
    /** In the order in which they came, those that came again included. */
    told: (room: string): Told[] => rooms.get(room) ?? [],

    /** What is wrong with the order in which messages came first: each epoch follows the one before, without a hole. */
    problems(): string[] {
      const problems: string[] = []
      for (const [room, told] of rooms) {
        const heads = new Map<string, number>()
        for (const { epoch, seq } of told) {
          const head = heads.get(epoch)
          if (head === undefined || seq === head + 1) heads.set(epoch, seq)
          else if (seq > head + 1) problems.push(`${room}: ${seq} came after ${head} of ${epoch}`)
        }
      }
      return problems
    },
  }
}
