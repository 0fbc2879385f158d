// HTTP requests, each on a connection of its own: a shared one might just be closing at the other side.
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'

/** @param url its path is sent as it is written, unresolved */
export function ask(
  url: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer; json: () => any }> {
  const [, host, port, path] = /^http:\/\/([^:/]+):(\d+)(.*)$/s.exec(url) ?? []
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host, port, path, method, headers, agent: false }, async response => {
      try {
        const received = Buffer.concat(await response.toArray())
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, body: received, json: () => JSON.parse(received.toString()) })
      } catch (error) {
        reject(error)
      }
    })
    request.on('error', reject)
    request.end(body)
  })
}
