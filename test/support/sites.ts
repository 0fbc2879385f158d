// Web servers of tests, with pages for real browsers.
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { browserFiles } from '../../packages/client/browser-files.js'
import { atEnd } from './cleanup.ts'

/** Listens until the test file ends. @returns its origin */
export async function serve(server: Server): Promise<string> {
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export const startSite = (answer: RequestListener) => serve(createServer(answer))

/**
 * Pages that note what they are shown (`sightings.js`) at `/`, empty ones elsewhere, and at `/values/{id}` what they
 * follow.
 *
 * @param answers at other paths
 * @returns their origin
 */
export function startPages(valueFor: (id: string) => string, answers: Record<string, () => Promise<string>> = {}) {
  const scripts = browserFiles().set('/sightings.js', new URL('sightings.js', import.meta.url))
  return startSite(async ({ url = '' }, response) => {
    const path = url.split('?')[0]
    const [, id] = /^\/values\/(.*)$/.exec(path) ?? []
    if (id !== undefined) {
      response.setHeader('content-type', 'application/json')
      response.end(valueFor(id))
    } else if (answers[path]) {
      response.end(await answers[path]())
    } else if (scripts.has(path)) {
      response.setHeader('content-type', 'text/javascript')
      response.end(readFileSync(scripts.get(path) as URL))
    } else {
      response.setHeader('content-type', 'text/html')
      const module = path === '/' ? '<script type="module" src="/sightings.js"></script>' : ''
      response.end(`<!doctype html><link rel="icon" href="data:,">${module}`)
    }
  })
}
