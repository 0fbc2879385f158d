import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('check-health.ts', import.meta.url))

const toClose: (() => void)[] = []
afterEach(() => {
  for (const close of toClose.splice(0)) close()
})

const serve = async (answer: RequestListener): Promise<string> => {
  const server = createServer(answer).listen(0, '127.0.0.1')
  toClose.push(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${Object(server.address()).port}/health/ready`
}

const check = async (...args: string[]) => {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said += text
  })
  const [code] = await once(child, 'close')
  return { code, said }
}

test('a service that is ready is healthy', async () => {
  const url = await serve((_, response) => response.end('{}'))
  expect(await check(url)).toEqual({ code: 0, said: '' })
})

test('a service that is not ready is unhealthy, and the reason is printed', async () => {
  const url = await serve((_, response) => response.writeHead(503).end('no fetcher node answers'))
  expect(await check(url)).toEqual({ code: 1, said: `${url}: HTTP 503 no fetcher node answers\n` })
})

test('a service that does not run is unhealthy', async () => {
  const url = await serve(() => {})
  for (const close of toClose.splice(0)) close()
  const { code, said } = await check(url)
  expect(code).toBe(1)
  expect(said).toContain('ECONNREFUSED')
})

test('a service that does not answer is unhealthy before the time-out of the images', async () => {
  const url = await serve(() => {})
  const { code, said } = await check(url)
  expect(code).toBe(1)
  expect(said).toContain('abort')
})

test('a missing URL is an error', async () => {
  const { code, said } = await check()
  expect(code).toBe(1)
  expect(said).toContain('undefined')
})
