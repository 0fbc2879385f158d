// The ways of a request and of a change through the gateway, by the files whose functions run: docs/architecture.md lists
// them, so that whoever reads those has read all there is.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8')

/** Of one flow: more than a reader keeps in mind. A file that goes in is to take the place of another. */
const FILES_MAX = 15

/** The files that a section of the page lists, in alphabetical order. */
function filesListed(heading: string) {
  const [, section] = page.split(`### ${heading}\n`)
  const [list] = section.split('\n#')
  return [...list.matchAll(/^- `([^`]+)`/gm)].map(([, file]) => file).sort()
}

const fixture = fileURLToPath(new URL('flows.fixture.ts', import.meta.url))
const flows = JSON.parse(execFileSync(process.execPath, [fixture], { encoding: 'utf8' }))

test('a subscribe to a key that nobody watched runs through the files that are listed', () => {
  expect(flows.subscribe).toEqual(filesListed('A cold subscribe in the gateway'))
  expect(flows.subscribe.length).toBeLessThanOrEqual(FILES_MAX)
})

test('a changed value runs through the files that are listed, from the backbone to the socket', () => {
  expect(flows.received).toMatchObject([{ type: 'value', data: 2 }])
  expect(flows.change).toEqual(filesListed('A changed value in the gateway'))
  expect(flows.change.length).toBeLessThanOrEqual(FILES_MAX)
})
