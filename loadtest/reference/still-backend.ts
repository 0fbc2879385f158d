#!/usr/bin/env node
// An HTTP backend whose values never change, at the least CPU time that Node can do it with: of a machine that it shares
// with a fetcher it takes little. It understands no more of HTTP than that fetcher's GET.
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { parseArgs } from 'node:util'

const HOST = '127.0.0.1'
const END_OF_HEAD = '\r\n\r\n'
/** Of a request without a body: nobody honest sends more. */
const HEAD_BYTES_MAX = 8_192

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    bytes: { type: 'string', default: '200' },
    /** Until each answer, in milliseconds. */
    latency: { type: 'string', default: '0' },
  },
})
const bytes = Number(values.bytes)
const latencyMs = Number(values.latency)

const counts = { total: 0, full: 0, notModified: 0 }
let concurrency = 0
let concurrencyMax = 0
const filler = 'x'.repeat(bytes)
const NOT_MODIFIED = 'HTTP/1.1 304 Not Modified\r\netag: "1"\r\ncache-control: public\r\n\r\n'

/** @param body of one byte a character */
const found = (type: string, body: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\netag: "1"\r\ncache-control: public\r\n\r\n${body}`

/** @returns JSON of the length that was asked for, other for each path */
function valueAt(path: string): string {
  const start = `{"id":"${path.slice(path.lastIndexOf('/') + 1)}","text":"`
  return `${start}${filler.slice(start.length + 2)}"}`
}

/** @param head of a request */
function answerTo(head: string) {
  const path = head.slice(head.indexOf(' ') + 1, head.indexOf(' HTTP/'))
  if (path === '/stats') {
    return found('application/json', JSON.stringify({ requests: { still: counts }, concurrencyMax }))
  }
  if (path === '/stats/reset') {
    Object.assign(counts, { total: 0, full: 0, notModified: 0 })
    concurrencyMax = concurrency
    return found('application/json', '{}')
  }
  counts.total++
  if (head.includes('\r\nif-none-match: "1"\r\n')) {
    counts.notModified++
    return NOT_MODIFIED
  }
  counts.full++
  return found('application/json', valueAt(path))
}

function answerLater(socket: Socket, answers: string, count: number) {
  if (latencyMs === 0) return socket.write(answers, 'latin1')
  concurrency += count
  concurrencyMax = Math.max(concurrencyMax, concurrency)
  return setTimeout(() => {
    concurrency -= count
    socket.write(answers, 'latin1')
  }, latencyMs)
}

const server = createServer({ noDelay: true }, socket => {
  let rest = ''
  socket.setEncoding('latin1')
  socket.on('data', chunk => {
    let requests = rest + chunk
    let answers = ''
    let answered = 0
    for (let end = requests.indexOf(END_OF_HEAD); end !== -1; end = requests.indexOf(END_OF_HEAD)) {
      answers += answerTo(requests.slice(0, end + 2))
      answered++
      requests = requests.slice(end + END_OF_HEAD.length)
    }
    rest = requests
    if (answered > 0) answerLater(socket, answers, answered)
    if (rest.length > HEAD_BYTES_MAX) socket.destroy()
  })
  socket.on('error', () => {})
})

server.listen(Number(values.port), HOST, 4_096, () => {
  const { port } = server.address() as AddressInfo
  console.log(JSON.stringify({ msg: 'listening', port }))
})
process.once('SIGTERM', () => process.exit(0))
