// The host's proxy as a real process on free ports, and stand-ins for the servers behind it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request as requestPlainly } from 'node:http'
import { request as requestSecurely } from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { WebSocket as WsWebSocket } from 'ws'
import WebSocket, { WebSocketServer } from 'ws'
import { atEnd, newFolder } from './cleanup.ts'
import { eventually, within } from './deadline.ts'
import { freePorts } from './free-ports.ts'
import { ofNode } from './node-process.ts'
import { childrenOf } from './processes.ts'

/** What `npx keycast proxy` runs. */
export const proxyCommand = [fileURLToPath(new URL('../../cli/keycast.js', import.meta.url)), 'proxy']

/** The stand-in's policy for its page. */
export const pagePolicy = "default-src 'self'"

export type RunningProxy = Awaited<ReturnType<typeof startProxy>>
export type StandIn = Awaited<ReturnType<typeof startStandIn>>

interface Options {
  /** Of the script. */
  args?: string[]
  /** Settings of the template. */
  env?: Record<string, string>
  /** One that was there before, in its place. */
  after?: Place
}

export async function startProxy(gatewayPorts: number[], { args = [], env = {}, after }: Options = {}) {
  const { directory, httpPort, httpsPort } = after ?? (await newPlace())
  const gateways = gatewayPorts.flatMap(port => ['--gateway', `127.0.0.1:${port}`])
  const ports = ['--http-port', String(httpPort), '--https-port', String(httpsPort)]
  const child = spawn(process.execPath, [...proxyCommand, '--directory', directory, ...ports, ...gateways, ...args], {
    env: { ...ofNode, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise(resolve => child.once('close', resolve))
  const stop = async () => {
    child.kill('SIGTERM')
    return within(exited, 'the end of the proxy')
  }
  atEnd(stop)

  const said: string[] = []
  createInterface(child.stderr).on('line', line => said.push(line))
  await within(
    new Promise((resolve, reject) => {
      createInterface(child.stdout).once('line', resolve)
      exited.then(() => reject(new Error(`the proxy ended before it listened:\n${said.join('\n')}`)))
    }),
    'the proxy listening',
  )
  const pidIn = () => Number(readFileSync(join(directory, 'nginx.pid'), 'utf8'))
  const masterPid = await eventually(pidIn, 'the pid of nginx') // the file is there before what it says
  return {
    directory,
    httpPort,
    httpsPort,
    url: (path: string) => `https://127.0.0.1:${httpsPort}${path}`,
    masterPid,
    log: () => said.join('\n'),
    /** The requests nginx has logged, once they are so many. */
    requests: async (count: number): Promise<Record<string, any>[]> => {
      const lines = () => readFileSync(join(directory, 'access.log'), 'utf8').split('\n').filter(Boolean)
      await eventually(() => lines().length >= count, `a log of ${count} requests`)
      return lines().map(line => JSON.parse(line))
    },
    workers: () => childrenOf(masterPid),
    reload: () => child.kill('SIGHUP'),
    reopenLogs: () => child.kill('SIGUSR1'),
    /** Without a chance to stop nginx. */
    kill: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
    /** Resolves with the exit code. */
    stop,
  }
}

interface Place {
  directory: string
  httpPort: number
  httpsPort: number
}

async function newPlace(): Promise<Place> {
  const folder = newFolder()
  chmodSync(folder, 0o755) // for workers that open a log anew: started by root, they are another user
  const directory = join(folder, 'a proxy') // with a space: it is somebody's
  mkdirSync(directory)
  const [httpPort, httpsPort] = await freePorts(2)
  return { directory, httpPort, httpsPort }
}

/**
 * A WebSocket through the proxy.
 *
 * @param options `from` is the client's address
 * @returns once it is open; rejects with the status the upgrade was refused with
 */
export async function openSocket(
  { httpsPort }: { httpsPort: number },
  {
    protocols = [],
    headers = {},
    from = '127.0.0.1',
  }: { protocols?: string[]; headers?: Record<string, string>; from?: string } = {},
): Promise<WebSocket> {
  const socket = new WebSocket(`wss://127.0.0.1:${httpsPort}/ws`, protocols, {
    headers,
    localAddress: from,
    rejectUnauthorized: false,
  })
  atEnd(() => socket.terminate())
  await new Promise((resolve, reject) => {
    socket.once('open', () => resolve(undefined)).on('error', reject)
  })
  return socket
}

/**
 * A stand-in for a gateway: answers requests with its name, echoes WebSocket messages, and records every request.
 *
 * @param port the port of one that died, to come back
 */
export async function startStandIn(name: string, port?: number) {
  const taken = port ?? (await freePorts(1))[0] // for the next one may come back on it
  const requests: { url: string; headers: IncomingHttpHeaders }[] = []
  const record = ({ url = '', headers }: IncomingMessage) => requests.push({ url, headers })
  let unanswered = 0
  let dies = false
  const server = createServer((request, response) => {
    record(request)
    if (dies) return die()
    if (unanswered-- > 0) return
    if (request.url === '/') response.setHeader('content-security-policy', pagePolicy)
    response.end(name)
  })
  const webSockets = new WebSocketServer({
    server,
    path: '/ws',
    verifyClient: ({ req }: { req: IncomingMessage }) => {
      record(req)
      if (!dies) return true
      req.socket.destroy()
      die()
      return false
    },
  })
  webSockets.on('connection', socket => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    socket.on('error', () => {}) // cut off with its client
  })
  await new Promise(resolve => server.listen(taken, '127.0.0.1', () => resolve(undefined)))
  /** Every connection is cut and no new one taken, as when its process is killed. */
  const die = () => {
    for (const socket of webSockets.clients) socket.terminate()
    server.closeAllConnections()
    server.close()
  }
  atEnd(die)
  return {
    port: taken,
    requests,
    sockets: () => webSockets.clients.size,
    /** Takes requests and answers none of the next ones. */
    hang: (count = Infinity) => {
      unanswered = count
    },
    /** The next request ends it, before it is answered. */
    dieOnRequest: () => {
      dies = true
    },
    die,
  }
}

/** @param options `path` is sent as it is, dots and all */
export function request(
  url: string,
  {
    body,
    ...options
  }: { method?: string; headers?: Record<string, string>; body?: string; path?: string; localAddress?: string } = {},
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: string }> {
  const send = url.startsWith('https:') ? requestSecurely : requestPlainly
  return new Promise((resolve, reject) => {
    send(url, { rejectUnauthorized: false, agent: false, ...options }, response => {
      let text = ''
      response.on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: text }))
    })
      .on('error', reject)
      .end(body)
  })
}

export async function echo(socket: WsWebSocket, text: string) {
  if (socket.readyState !== WebSocket.OPEN) throw new Error('the WebSocket is closed')
  socket.send(text)
  const closed = once(socket, 'close').then(() => Promise.reject(new Error('the WebSocket was closed')))
  const [answer] = await Promise.race([once(socket, 'message'), closed])
  return String(answer)
}
