// docs/http-api.md against the code: every path and every code with its status, none missing and none made up.
import { readFileSync } from 'node:fs'
import { createCounts } from '../../services/gateway/counts.ts'
import { readLibrary } from '../../services/gateway/doors/http/library.ts'
import { readChat, readPage } from '../../services/gateway/doors/http/page.ts'
import { statuses } from '../../services/gateway/doors/http/problems.ts'
import { filesOf, read } from './markdown.ts'

const page = read('docs/http-api.md')

/** @returns what stands under it, up to the next heading of its level or above */
function section(heading: string): string {
  const [level] = /^#+/.exec(heading) ?? ['']
  const [, rest] = page.split(`\n${heading}\n`)
  if (rest === undefined) throw new Error(`docs/http-api.md has no ${heading}`)
  return rest.split(new RegExp(`^#{2,${level.length}} `, 'm'))[0]
}

/** The cells of a table's rows, without its head. */
const rowsOf = (text: string) =>
  [...text.matchAll(/^\| (.*) \|$/gm)]
    .map(([, row]) => row.split(' | '))
    .filter(([first]) => !/^(-+|status|code|path|listener)\b/.test(first))

/** The routes of a source, as the page writes them. */
const routesOf = (file: string) =>
  [...read(file).matchAll(/\b(?:app|calls|scope)\.(get|post|put|patch|delete|all|route)\(\s*(['`])(.+?)\2/g)].map(
    ([, method, , path]) =>
      `${method.toUpperCase()} ${path
        .replace(/\$\{VALUES_PATH\}/, '/v1/values/')
        .replace(/\*$/, '{key}')
        .replaceAll(/:(\w+)/g, '{$1}')}`,
  )

/** The paths that stand as headings under a section, such as `GET /metrics`. */
const headed = (heading: string) =>
  [...section(heading).matchAll(/^### (?:Journal: )?`([A-Z]+ [^`]+)`$/gm)].map(([, route]) => route)

const inFolder = (folder: string) =>
  filesOf(folder).filter(file => /\.[jt]s$/.test(file) && !/\.test\.[jt]s$/.test(file))

/** Of the gateway: under the token of the API. */
const forBackends = [
  'services/gateway/doors/access-http.ts',
  'services/gateway/doors/delete-http.ts',
  'services/gateway/doors/hand-over-http.ts',
  'services/gateway/doors/publish-http.ts',
  'services/gateway/doors/refresh-http.ts',
  'services/gateway/doors/revoke-http.ts',
  'services/gateway/doors/state-http.ts',
]

test('every path for clients is there', () => {
  const sources = inFolder('services/gateway/doors').filter(file => !forBackends.includes(file))
  // The page, the library and the chat are files, each with a path.
  const files = ['GET /', 'GET /keycast.js', 'GET /chat']
  expect(headed('## For clients').sort()).toEqual([...sources.flatMap(routesOf), ...files].sort())
  const known = ['/', '/keycast.js', '/chat']
  const served = [...readPage().keys(), ...readLibrary().keys(), ...readChat().keys()]
  const elsewhere = served.filter(path => !known.includes(path) && !/^\/(keycast\/|chat\/|[a-z-]+\.)/.test(path))
  expect(elsewhere).toEqual([])
})

test('every call of the backend and the operator is there, and that of the journal', () => {
  expect(headed('## For the backend and the operator').sort()).toEqual(
    [...forBackends, 'services/journal/room-http.ts'].flatMap(routesOf).sort(),
  )
})

test('every path that all services have is there, and no service has others', () => {
  expect(headed('## Health and metrics').sort()).toEqual(routesOf('packages/service/internal-server.ts').sort())
  const others = [...inFolder('services/fetcher'), ...inFolder('services/journal'), ...inFolder('packages/service')]
  expect(others.filter(file => routesOf(file).length > 0)).toEqual([
    'services/journal/room-http.ts',
    'packages/service/internal-server.ts',
  ])
})

test('every code has the status that it is sent with', () => {
  const listed = rowsOf(section('## Errors')).flatMap(([status, codes]) =>
    /^\d+$/.test(status) ? codes.split(', ').map(code => [code.slice(1, -1), Number(status)]) : [],
  )
  expect(Object.fromEntries(listed)).toEqual({ ...statuses, internal_error: 500 })
  expect(listed).toHaveLength(Object.keys(statuses).length + 1)
})

test('every path names the statuses of the codes that it is said to answer with', () => {
  for (const [, route, text] of page.matchAll(/^### `([^`]+)`\n([\s\S]*?)(?=^##)/gm)) {
    for (const [status, meaning] of rowsOf(text).filter(([status]) => /^\d{3}(, \d{3})*$/.test(status))) {
      for (const [, code] of meaning.matchAll(/`([a-z]+_[a-z_]+)`/g)) {
        const expected =
          code === 'too_large' ? 413 : code === 'not_ready' ? 503 : statuses[code as keyof typeof statuses]
        const isIn = status.includes(String(expected)) || (code === 'bad_request' && status === '413')
        expect({ route, code, status, isIn }).toEqual({ route, code, status, isIn: true })
      }
    }
  }
})

test('every reason for which an upgrade is refused is there', () => {
  const reasons = rowsOf(section('## Upgrades at /ws')).map(([, reason]) => reason.slice(1, -1))
  expect([...new Set(reasons)].sort()).toEqual(Object.keys(createCounts().refused).sort())
})

test('every path that nginx passes on is there, and every status that it is told to answer with', () => {
  const template = readFileSync(new URL('../../proxy/nginx.conf.template', import.meta.url), 'utf8')
  const text = section('## The proxy')
  const locations = /^ +location (?:= |~ \^)?(\/[a-z0-9/-]*).*\n(?! +internal;)/gm
  const prefixes = [...template.matchAll(locations)].map(([, path]) => path)
  expect(prefixes).toEqual(expect.arrayContaining(['/ws', '/v1/values/', '/keycast/']))
  for (const path of prefixes) expect(text).toContain(`\`${path}`)
  const answered = [...template.matchAll(/(?:return|_status) (\d{3})\b/g)].map(([, status]) => status)
  for (const status of new Set(answered)) {
    expect({
      status,
      isThere: new RegExp(`^\\| ${status}[ ,]|: ${status} while`, 'm').test(text) || status === '200',
    }).toEqual({
      status,
      isThere: true,
    })
  }
})
