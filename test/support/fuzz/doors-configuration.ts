// Doors: what an operator writes, keycast.yaml and settings.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Misconfigured, readSettings } from '@keycast/service'
import { readNamespaces } from '@keycast/service/namespaces'
import fc from 'fast-check'
import { settings as providerSettings } from '../../../services/data-provider/settings.ts'
import { settings as fetcherSettings } from '../../../services/fetcher/settings.ts'
import { readAccess } from '../../../services/gateway/access/policy-file.ts'
import { settings as gatewaySettings } from '../../../services/gateway/settings.ts'
import { settings as journalSettings } from '../../../services/journal/settings.ts'
import { newFolder } from '../cleanup.ts'
import { Absurd, absurdBytes, absurdJson, absurdText } from './absurd.ts'
import type { AnyDoor } from './judge.ts'

const env = { BACKEND_TOKEN: 'b', JWT_SECRET: 'a secret of more than 32 bytes, it is' }
const authorize = { url: 'http://127.0.0.1:1/may/{id}', method: 'GET', keep: '60s' }

const written = {
  namespaces: {
    conversation: {
      source: 'http',
      url: 'http://127.0.0.1:1/conversations/{id}',
      headers: { authorization: `Bearer \${BACKEND_TOKEN}` },
      maxAge: '1s',
      refresh: 500,
      timeout: '2s',
      maxBytes: '4MiB',
      ids: { segments: 2 },
      authorize,
    },
    own: { source: 'http', url: 'http://127.0.0.1:1/own/{id}', per: 'user', credentials: 'viewer' },
    room: {
      source: 'journal',
      history: { messages: 1_000, age: '7d', bytes: '16MiB' },
      maxBytes: '64KiB',
      publish: 'client',
      members: 'named',
      names: 'unique',
      authorize: { ...authorize, timeout: '1s' },
    },
  },
  access: {
    anonymous: { read: ['conversation:*', 'room:**'], publish: ['room:*'], join: ['room:*'] },
    everyone: { read: ['own:{sub}'] },
    claim: 'keys',
    tokens: [
      { secret: [`\${JWT_SECRET}`, `\${OLD:-}`], algorithms: ['HS256'], issuer: 'a', audience: 'b', prefix: 'app|' },
      { jwks: 'http://127.0.0.1:1/jwks.json', algorithms: ['ES256', 'RS256'], issuer: 'c', prefix: 'web|' },
    ],
    cookie: 'token',
    maxLifetime: '1d',
  },
}

/** What only YAML can say. */
const yaml = [
  `a: &a [1,1]\n${Array.from({ length: 30 }, (_, n) => `b${n}: &b${n} [${`*${n === 0 ? 'a' : `b${n - 1}`},`.repeat(9)}]`).join('\n')}`,
  `namespaces: &n\n  room: { source: journal }\n  other: { <<: *n }\naccess: *n`,
  `namespaces: &n { room: *n }`,
  `namespaces: *nowhere`,
  `namespaces: !!js/function "function () {}"\naccess: !!binary "////"`,
  `namespaces: !!set { a, b }\naccess: !!omap [a: 1, a: 2]`,
  `namespaces:\n  room: { source: journal }\n  room: { source: http }`,
  `%YAML 9.9\n---\nnamespaces: {}\n---\nnamespaces: {}`,
  `namespaces:\n\troom:\n\t\tsource: journal`,
  `__proto__: { isPolluted: true }\nnamespaces: { __proto__: { source: journal }, constructor: { source: journal } }`,
  `namespaces: { room: { source: journal, history: { messages: .nan, age: .inf, bytes: 0x10 } } }`,
  `namespaces: |\n${'  x\n'.repeat(10_000)}`,
  Array.from({ length: 2_000 }, (_, n) => `${' '.repeat(n)}a:`).join('\n'),
  Array.from({ length: 2_000 }, (_, n) => `${' '.repeat(n)}-`).join('\n'),
  `${'- '.repeat(5_000)}a`,
  `${'? '.repeat(5_000)}a`,
  `${'!a '.repeat(5_000)}a`,
  `a: "${'\\x41'.repeat(50_000)}"`,
].map((text, n) => new Absurd('keycast.yaml', `YAML ${n}`, [Buffer.from(text)]))

/** A configuration that names a folder is not looked for: only what is written in it is judged. */
export function configurationDoors(): AnyDoor[] {
  const path = join(newFolder(), 'keycast.yaml')
  const shipped = readFileSync(new URL('../../../keycast.yaml', import.meta.url))
  const inFile = (take: () => unknown) => (given: Absurd) => {
    writeFileSync(path, given.bytes)
    take()
  }
  const files = fc
    .oneof(
      { weight: 6, arbitrary: absurdJson([['keycast.yaml', written]]) },
      { weight: 1, arbitrary: absurdBytes([['the keycast.yaml of this repository', shipped]]) },
      { weight: 1, arbitrary: fc.constantFrom(...yaml) },
    )
    // The parser takes a second for 200 KB: an operator waits for a file of that size.
    .filter(({ bytes }) => bytes.length < 30_000)
  return [
    {
      name: 'the namespaces of keycast.yaml',
      inputs: files,
      take: inFile(() => {
        readNamespaces({ path, env })
        readNamespaces({ path, env, headers: false, authorize: false })
      }),
      errors: [Misconfigured],
      namesAll: true,
    },
    {
      name: 'the access section of keycast.yaml',
      inputs: files,
      take: inFile(() =>
        readAccess({ path, env, origins: 'https://app.example', namespaces: ['conversation', 'room'], profile: 'try' }),
      ),
      errors: [Misconfigured],
      namesAll: true,
    },
    ...Object.entries({
      gateway: gatewaySettings,
      fetcher: fetcherSettings,
      journal: journalSettings,
      'data-provider': providerSettings,
    }).map(([name, settings]): AnyDoor => {
      const declared = Object.values(settings)
      const texts = declared.map(each => each.show(each.default as never)).filter(text => text !== '')
      return {
        name: `the settings of ${name}`,
        inputs: fc.tuple(fc.constantFrom(...declared), absurdText(texts)),
        take: ([{ env }, text]: [{ env: string }, string]) =>
          readSettings(settings, { name, about: '', env: { [env]: text }, argv: [] }),
        errors: [Misconfigured],
        namesAll: true,
      }
    }),
  ]
}
