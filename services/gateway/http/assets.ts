// Files that are served from memory: read once, at start, with an ETag each.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { matchesAny } from './entity-tags.ts'

/**
 * @typedef {{ body: Buffer, type: string, tag: string }} Asset
 * @typedef {ReadonlyMap<string, Asset>} Assets by URL path
 */

/**
 * @param {URL} file
 * @param {string} type its content-type
 * @returns {Asset}
 */
export function readAsset(file, type) {
  const body = readFileSync(file)
  const tag = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  return { body, type, tag }
}

/**
 * Adds a route per file. A browser keeps the files and asks each time whether they changed, so that a new gateway's
 * files are seen at once and never mixed with an old one's.
 *
 * @param {import('fastify').FastifyInstance} app
 * @param {Assets} assets
 * @param {Record<string, string>} headers sent with each
 */
export function addAssets(app, assets, headers) {
  for (const [path, { body, type, tag }] of assets) {
    app.get(path, (request, reply) => {
      reply.headers(headers).headers({ 'cache-control': 'no-cache', etag: `"${tag}"` })
      if (matchesAny(request.headers['if-none-match'], tag)) return reply.code(304).send()
      return reply.type(type).send(body)
    })
  }
}
