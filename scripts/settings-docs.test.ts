import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readNamespaces } from '@keycast/service/namespaces'
import { parse } from 'yaml'
import { proxyItems, withLists } from './settings-docs.ts'

const page = readFileSync(new URL('../docs/configuration.md', import.meta.url), 'utf8')

test('docs/configuration.md shows every setting as it is declared (node scripts/settings-docs.js writes it)', () => {
  const asked = [...page.matchAll(/<!-- settings: (\S+) -->/g)].map(([, name]) => name)
  expect(asked.sort()).toEqual(['common', 'data-provider', 'fetcher', 'gateway', 'journal', 'npm-start', 'proxy'])
  expect(withLists(page)).toBe(page)
})

test('docs/configuration.md shows every field of a namespace with its default', () => {
  /** The property for each field: one that is missing here belongs to a field that the page lacks. */
  const properties = {
    source: ['source'],
    url: ['urlFor', 'origin'],
    method: [], // of the body
    body: [], // absent unless given
    batch: [], // absent unless given
    headers: ['headers'],
    token: [], // absent unless given
    maxAge: ['maxAgeMs'],
    refresh: ['refreshMs'],
    changes: [], // absent unless given
    timeout: ['timeoutMs'],
    maxBytes: ['bytesMax'],
    redirects: [], // absent unless followed
    ids: ['ids'],
    query: [], // absent unless given
    asHeaders: [], // of the query
    notify: [], // absent unless given
    authorize: [], // absent unless given
  }
  const section = page.split('\n## Namespaces\n')[1].split('\n## ')[0]
  const shown = [...section.matchAll(/^- \*\*`(\w+)`\*\*(?:, default `([^`]*)`)?/gm)]
  expect(shown.map(([, name]) => name)).toEqual(Object.keys(properties))

  const byDefault = namespaceWith({})
  expect(Object.keys(byDefault).sort()).toEqual(['name', ...Object.values(properties).flat()].sort())
  const defaults = shown.filter(([, , standard]) => standard).map(([, name, standard]) => [name, parse(standard)])
  expect(JSON.stringify(namespaceWith(Object.fromEntries(defaults)))).toBe(JSON.stringify(byDefault))
})

test('docs/configuration.md shows every field of a namespace of rooms with its default', () => {
  const properties = {
    history: ['history'],
    maxBytes: ['bytesMax'],
    publish: ['publish'],
    members: ['members'],
    names: ['names'],
  }
  const section = page.split('\n## Namespaces of rooms\n')[1].split('\n## ')[0]
  const shown = [...section.matchAll(/^- \*\*`(\w+)`\*\*, default `([^`]*)`/gm)]
  expect(shown.map(([, name]) => name)).toEqual(Object.keys(properties))

  const byDefault = roomsWith({})
  expect(Object.keys(byDefault).sort()).toEqual(['name', 'source', ...Object.values(properties).flat()].sort())
  const defaults = shown.map(([, name, standard]) => [name, parse(standard)])
  expect(roomsWith(Object.fromEntries(defaults))).toEqual(byDefault)
})

test('docs/configuration.md shows every field of a namespace of pushed values with its default', () => {
  const section = page.split('\n## source: pushed\n')[1].split('\n## ')[0]
  const shown = [...section.matchAll(/^- \*\*`(\w+)`\*\*(?:, default `([^`]*)`)?/gm)]
  expect(shown.map(([, name]) => name)).toEqual(['maxAge', 'maxBytes', 'ids', 'authorize'])
  const defaults = shown.filter(([, , standard]) => standard).map(([, name, standard]) => [name, parse(standard)])
  expect(pushedWith(Object.fromEntries(defaults))).toEqual(pushedWith({}))
})

/** @param fields beside those it has to have */
const namespaceWith = (fields: Record<string, unknown>) =>
  namespacesWith({ source: 'http', url: 'http://h/{id}', ...fields }).fetched.get('a') as object

const roomsWith = (fields: Record<string, unknown>) =>
  namespacesWith({ source: 'journal', ...fields }).journal.get('a') as object

const pushedWith = (fields: Record<string, unknown>) =>
  namespacesWith({ source: 'pushed', ...fields }).pushed.get('a') as object

/** @param a the one namespace */
function namespacesWith(a: Record<string, unknown>) {
  const folder = mkdtempSync(join(tmpdir(), 'keycast-docs-'))
  try {
    const path = join(folder, 'keycast.yaml')
    // JSON is YAML.
    writeFileSync(path, JSON.stringify({ namespaces: { a } }))
    return readNamespaces({ path })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('docs/configuration.md shows every variable of the Compose files with its default', () => {
  const compose = ['docker-compose.yml', 'docker-compose.valkey.yml']
    .map(file => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'))
    .join('\n')
  const [, section] = page.split('\n## Docker Compose\n')
  const shown = [...section.split('\n## ')[0].matchAll(/^- \*\*`(\w+)`\*\*(?:, default `([^`]*)`)?/gm)]
  const given = [...compose.matchAll(/\$\{(\w+):?-([^}]*)\}/g)]
  // A variable without a default is handed on as it is.
  const handedOn = [...compose.matchAll(/^ +([A-Z_]+):(?: #.*)?$/gm)].map(([, name]) => [name, ''])
  const sorted = (pairs: string[][]) => Object.fromEntries(pairs.sort())
  expect(sorted(shown.map(([, name, standard = '']) => [name, standard]))).toEqual(
    sorted([...given.map(([, name, standard]) => [name, standard]), ...handedOn]),
  )
})

test('a list for something that has no settings is an error', () => {
  expect(() => withLists('<!-- settings: teapot -->\n<!-- end -->')).toThrow('teapot')
})

test('a setting of the proxy without a comment, or with a check of another kind, is an error', () => {
  expect(() => proxyItems('setting PROXY_NAMES x\nflag\n')).toThrow('no comment')
  expect(() => proxyItems('# Names.\nsetting PROXY_NAMES x\n[ -n "$value" ]\n')).toThrow('no check')
})
