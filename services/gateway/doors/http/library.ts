// Serves the client library at `/keycast.js` and `/keycast/`: a page of any origin may import it.
import type { FastifyInstance } from 'fastify'
import { browserFiles } from '../../../../packages/client/browser-files.js'
import { type Assets, addAssets, readAsset } from './assets.ts'
import { forAnyPage } from './cors.ts'

/** Other origins' pages load modules with CORS, and check `integrity` only with it. */
const headers = Object.freeze({
  ...forAnyPage,
  'x-content-type-options': 'nosniff',
})

export function readLibrary(): Assets {
  return new Map([...browserFiles()].map(([path, file]) => [path, readAsset(file, 'text/javascript; charset=utf-8')]))
}

export function addLibrary(app: FastifyInstance, library: Assets = readLibrary()) {
  addAssets(app, library, headers)
}
