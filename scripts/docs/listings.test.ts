// The listings of docs/deploy against the code: a variable or an option that was renamed must not stay behind in a command.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readNamespaces } from '@keycast/service/namespaces'
import { filesOf, listingsOf, read } from './markdown.ts'

const pages = filesOf('docs/deploy')

const verbs = filesOf('cli')

/** Those of the client library. */
const clientVerbs = ['watch', 'get', 'publish', 'history', 'members']

/** What several verbs say of their options. */
const shared = read('cli/support/gateways.ts')

/** Variables that the shell, Node and our own tools read beside settings. */
const others = ['NODE_EXTRA_CA_CERTS', 'KEYCAST_TOKEN']

/** Every setting of every part: tests hold that page to the code. */
const settings = [...read('docs/configuration.md').matchAll(/\*\*`([A-Z][A-Z_]+)`\*\*/g)].map(([, name]) => name)

/** Commands that continue on the next line, in one. */
const commandsOf = (listing: string) => listing.replaceAll(/\\\n/g, ' ').split('\n')

test.each(pages)('%s: a variable that a command or a file sets is a setting', page => {
  const set = listingsOf(read(page)).flatMap(listing =>
    [...listing.matchAll(/(?<![\w%{])([A-Z][A-Z]*_[A-Z_]+)(?==)/g)].map(([, name]) => name),
  )
  const named = [...settings, ...others, ...settings.map(name => `${name}_FILE`)]
  expect(set.filter(name => !named.includes(name))).toEqual([])
})

test.each(pages)("%s: a verb of keycast is there, and an option is one that the verb's --help has", page => {
  const unknown = listingsOf(read(page))
    .flatMap(commandsOf)
    .flatMap(command => {
      const line = command.replace(/ #.*/, '')
      // Under pm2 the words behind a lone -- are ours.
      const [, verb, rest] =
        / pm2 start cli\/keycast\.js .* -- ([a-z-]+)\b(.*)/.exec(line) ?? /\bkeycast ([a-z-]+)\b(.*)/.exec(line) ?? []
      if (!verb || clientVerbs.includes(verb)) return []
      const known = verbs.includes(`cli/${verb}.ts`) ? `${read(`cli/${verb}.ts`)}${shared}` : ''
      if (!known) return [verb]
      return [...rest.matchAll(/ (--[a-z-]+)/g)]
        .map(([, option]) => option)
        .filter(option => !new RegExp(`^ +${option}\\b`, 'm').test(known))
        .map(option => `${verb} ${option}`)
    })
  expect(unknown).toEqual([])
})

test('the proxy of several-hosts.md is the one that its gateways trust, and listens where its table of ports says', () => {
  const page = 'docs/deploy/several-hosts.md'
  const text = read(page)
  const one = (words: string) => listingsOf(text).find(listing => listing.includes(words)) ?? ''
  const [, proxy] = /\| (10\.0\.0\.\d+) \| the proxy/.exec(text) ?? []
  expect(one('--only gateway')).toContain(`GATEWAY_TRUSTED_PROXIES=${proxy}\n`)
  expect(text).toContain('| clients | proxy | 443; 80 |')
  expect(one('-- proxy')).toMatch(/--host 0\.0\.0\.0 --https-port 443 --http-port 80 /)
})

/** @param text of a keycast.yaml, or the part of one below `namespaces:` @param folder for the file */
function readAsServicesDo(text: string, folder: string) {
  const path = join(folder, 'keycast.yaml')
  writeFileSync(path, /^namespaces:/m.test(text) ? text : `namespaces:\n${text}`)
  return readNamespaces({ path, env: { BACKEND_TOKEN: 'secret' } })
}

const namespaces = [...pages, 'docs/configuration.md'].flatMap(page =>
  listingsOf(read(page))
    .filter(listing => /^ +source: (http|journal)$/m.test(listing))
    .map(listing => [page, listing]),
)

/** The kinds of endpoints whose lines the page about a backend of one's own says in full. */
const fitting = [...read('docs/deploy/own-backend.md').matchAll(/^\| .+ \| (`url: .*) \| `[^`]+` \|$/gm)].map(
  ([, cell]) => [
    'a row of docs/deploy/own-backend.md',
    ['  a:', '    source: http', ...Array.from(cell.matchAll(/`([^`]+)`/g), ([, line]) => `    ${line}`)].join('\n'),
  ],
)

test.each([...namespaces, ...fitting])('%s: services read the namespaces of\n%s', (_, text) => {
  const folder = mkdtempSync(join(tmpdir(), 'keycast-listings-'))
  try {
    expect(() => readAsServicesDo(text, folder)).not.toThrow()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('there are namespaces in the pages, and rows with lines', () => {
  expect(namespaces.length).toBeGreaterThan(4)
  expect(fitting.length).toBeGreaterThan(3)
})
