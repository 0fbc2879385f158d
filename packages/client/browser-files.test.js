import { readFileSync } from 'node:fs'
import { browserFiles } from './browser-files.js'

/** The modules a module imports or re-exports. @param {string} source */
const importsOf = source => [...source.matchAll(/^(?:import|export)[^'"]*? from '(.+)'$/gm)].map(([, name]) => name)

test('every module that one of them imports is among them, and there are no others', () => {
  const files = browserFiles()
  const reached = new Set([
    '/keycast.js',
    '/keycast/values-only.js',
    '/keycast/fallback/fallback.js',
    '/keycast/key.js',
    '/keycast/rooms/message-list.js',
    '/keycast/shared/shared.js',
    '/keycast/shared/worker.js',
  ])
  for (const path of reached) {
    const file = files.get(path)
    if (!file) throw new Error(`${path} is imported and not among the files`)
    for (const name of importsOf(readFileSync(file, 'utf8'))) {
      if (!name.startsWith('.')) throw new Error(`${path} imports ${name}, which no browser finds`)
      reached.add(new URL(name, `http://host${path}`).pathname)
    }
  }
  expect([...reached].sort()).toEqual([...files.keys()].sort())
})
