// Serves the page at `/`, and the example of a chat at `/chat` where it is switched on: that is no part of a gateway, so its
// files may be missing. They have no build step.
import { readdirSync } from 'node:fs'
import { extname } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type Asset, type Assets, addAssets, readAsset } from './assets.ts'

const types = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
])

const examples = new URL('../../../../examples/', import.meta.url)
const protocolFolder = new URL('../../../../packages/protocol/', import.meta.url)

// The page shares these with the gateway. In the page's folder a file of the same name re-exports them for the tests;
// a browser, which knows no packages, gets the original in its place.
const shared = new Map([
  ['protocol-codes.js', new URL('codes.js', protocolFolder)],
  ['protocol-keys.js', new URL('keys.js', protocolFolder)],
])

/**
 * Nothing but the page's own files runs or loads, nobody frames it, and no text becomes markup (trusted types): values
 * come from a backend and are shown as they are. `blob:` shows a value that is an image.
 */
const headers = Object.freeze({
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
})

export const readPage = () => readFolder(new URL('page/', examples), { index: '/', prefix: '/' })

export const readChat = () => readFolder(new URL('chat/', examples), { index: '/chat', prefix: '/chat/' })

/** @param paths of index.html, and of the other files */
function readFolder(folder: URL, { index, prefix }: { index: string; prefix: string }): Assets {
  const assets = new Map<string, Asset>()
  for (const name of readdirSync(folder)) {
    const type = types.get(extname(name))
    if (!type || name.endsWith('.test.js')) continue
    const path = name === 'index.html' ? index : `${prefix}${name}`
    assets.set(path, readAsset(shared.get(name) ?? new URL(name, folder), type))
  }
  return assets
}

export function addPage(app: FastifyInstance, page: Assets) {
  addAssets(app, page, headers)
}
