// Serves the client library at `/keycast.js` and `/keycast/`: a page of any origin may import it.
import { browserFiles } from '../../../packages/client/browser-files.js'
import { addAssets, readAsset } from './assets.ts'

/** Other origins' pages load modules with CORS, and check `integrity` only with it. */
const headers = Object.freeze({
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
})

/** @returns {import('./assets.ts').Assets} */
export function readLibrary() {
  return new Map([...browserFiles()].map(([path, file]) => [path, readAsset(file, 'text/javascript; charset=utf-8')]))
}

/**
 * @param {import('fastify').FastifyInstance} app
 * @param {import('./assets.ts').Assets} [library]
 */
export function addLibrary(app, library = readLibrary()) {
  addAssets(app, library, headers)
}
