// The files that a browser needs, under the paths at which they find one another. For servers; not part of the package.
import { readdirSync } from 'node:fs'

const folder = new URL('./', import.meta.url)

/**
 * `/keycast.js` and the modules it imports.
 *
 * @returns {Map<string, URL>} files by URL path
 */
export function browserFiles() {
  const names = readdirSync(new URL('keycast/', folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.js') && !name.endsWith('.test.js'))
    .map(name => `keycast/${name.replaceAll('\\', '/')}`)
  return new Map(['keycast.js', ...names.sort()].map(name => [`/${name}`, new URL(name, folder)]))
}
