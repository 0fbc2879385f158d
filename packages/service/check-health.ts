// Asks a health endpoint and exits with 0 or 1: the health check of the images, which have no curl. It runs every few
// seconds in every container, so it loads only node:http, which takes half the CPU time of the first fetch().
import { http } from './node-http.ts'

/** Below the images' own limit, at which the check would be killed before it says why. */
const TIMEOUT_MS = 2_000

const [url] = process.argv.slice(2)

try {
  http
    .get(url, { signal: AbortSignal.timeout(TIMEOUT_MS), agent: false }, response => {
      if (response.statusCode === 200) return process.exit(0)
      let body = ''
      response.setEncoding('utf8')
      response.on('data', text => {
        body += text
      })
      response.on('end', () => fail(`HTTP ${response.statusCode} ${body}`))
      response.on('error', error => fail(error.message))
    })
    .on('error', error => fail(error.message))
} catch (error) {
  fail((error as Error).message)
}

function fail(why: string): never {
  console.error(`${url}: ${why}`)
  process.exit(1)
}
