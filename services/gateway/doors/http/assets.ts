// Files that are served from memory: read once, at start, with an ETag each.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { matchesAny } from './entity-tags.ts'

export interface Asset {
  body: Buffer
  type: string
  tag: string
}

/** By URL path. */
export type Assets = ReadonlyMap<string, Asset>

/** @param type its content-type */
export function readAsset(file: URL, type: string): Asset {
  const body = readFileSync(file)
  const tag = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  return { body, type, tag }
}

/**
 * Adds a route per file. A browser keeps the files and asks each time whether they changed, so that a new gateway's
 * files are seen at once and never mixed with an old one's.
 *
 * @param headers sent with each
 */
export function addAssets(app: FastifyInstance, assets: Assets, headers: Record<string, string>) {
  for (const [path, { body, type, tag }] of assets) {
    app.get(path, (request, reply) => {
      reply.headers(headers).headers({ 'cache-control': 'no-cache', etag: `"${tag}"` })
      if (matchesAny(request.headers['if-none-match'], tag)) return reply.code(304).send()
      return reply.type(type).send(body)
    })
  }
}
