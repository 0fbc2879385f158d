import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const fixture = fileURLToPath(new URL('./main.fixture.ts', import.meta.url))

let cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups) cleanup()
  cleanups = []
})

/** A primary process and its worker, which has announced itself. */
async function setup() {
  const directory = mkdtempSync(join(tmpdir(), 'keycast-'))
  const primary = spawn(process.execPath, [fixture, `ipc://${directory}/work`], { stdio: ['pipe', 'pipe', 'inherit'] })
  cleanups.push(() => {
    primary.kill('SIGKILL') // its worker follows: one of the tests below
    rmSync(directory, { recursive: true })
  })
  const lines = createInterface({ input: primary.stdout })[Symbol.asyncIterator]()

  /** @returns the next such line */
  async function printed(wanted: (line: any) => boolean): Promise<any> {
    const { value, done } = await lines.next()
    if (done) throw new Error('the primary and its worker are gone')
    const line = JSON.parse(value)
    return wanted(line) ? line : printed(wanted)
  }
  const { pid, message } = await printed(({ event }) => event === 'credit')
  return {
    primary,
    pid,
    credit: message.credit,
    printed,
    tell: (command: string) => primary.stdin.write(`${command}\n`),
  }
}

test('a worker takes as many leases as its primary says', async () => {
  expect((await setup()).credit).toBe(600)
})

test('signals that reach a worker change nothing: it goes on pulling', async () => {
  const { pid, tell, printed } = await setup()

  process.kill(pid, 'SIGTERM')
  process.kill(pid, 'SIGINT')
  tell('lease')

  expect((await printed(({ event }) => event === 'result')).message).toMatchObject({ code: 'backend_unreachable' })
})

test('questions who may read and pulls share no connection, though they go to one backend', async () => {
  const { tell, printed } = await setup()
  let connections = 0
  const server = createServer((_, response) => response.end('1'))
  server.on('connection', () => connections++)
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  cleanups.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/`

  for (const changes of [{ url }, { url, statusOf: 'GET' }, { url }, { url, statusOf: 'GET' }]) {
    tell(`lease ${JSON.stringify(changes)}`)
    expect((await printed(({ event }) => event === 'result')).message).toMatchObject({ status: 200 })
  }

  expect(connections).toBe(2)
})

test('a worker that its primary disconnects ends in order', async () => {
  const { tell, printed } = await setup()

  tell('disconnect')

  expect(await printed(({ event }) => event === 'exit')).toEqual({ event: 'exit', code: 0, signal: null })
})

test('a worker whose primary is killed ends too', async () => {
  const { primary } = await setup()

  primary.kill('SIGKILL')

  await once(primary, 'close') // its stdout, which the worker shares, has no writer left
})

test("a programmer's error is logged and ends the worker, so that the primary starts another", async () => {
  const { tell, printed } = await setup()

  tell('garbage')

  expect(await printed(({ level }) => level === 'fatal')).toMatchObject({ msg: 'worker failed' })
  expect(await printed(({ event }) => event === 'exit')).toMatchObject({ code: 1 })
})
