// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the placeholders under test
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AccessError, readAccess } from './policy-file.ts'

const SECRET = 'a secret of more than 32 bytes, it is'

const folder = mkdtempSync(join(tmpdir(), 'keycast-access-'))
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })
beforeAll(() => {
  const publicPem = { type: 'spki', format: 'pem' } as const
  const privatePem = { type: 'pkcs8', format: 'pem' } as const
  writeFileSync(join(folder, 'ec.pem'), ec.publicKey.export(publicPem))
  writeFileSync(join(folder, 'rsa.pem'), rsa.publicKey.export(publicPem))
  writeFileSync(join(folder, 'private.pem'), ec.privateKey.export(privatePem))
  writeFileSync(join(folder, 'no.pem'), 'hello')
  const weak = generateKeyPairSync('rsa', { modulusLength: 1_024 })
  writeFileSync(join(folder, 'weak.pem'), weak.publicKey.export(publicPem))
  const other = generateKeyPairSync('x25519')
  writeFileSync(join(folder, 'other.pem'), other.publicKey.export(publicPem))
})
afterAll(() => rmSync(folder, { recursive: true }))

const read = (
  yaml: string,
  {
    env = {},
    origins = 'https://example.org',
    namespaces,
    profile = 'production',
  }: { env?: NodeJS.ProcessEnv; origins?: string; namespaces?: string[]; profile?: 'production' | 'try' } = {},
) => {
  const path = join(folder, 'keycast.yaml')
  writeFileSync(path, yaml)
  return readAccess({ path, env, origins, namespaces, profile })
}

const problemsOf = (yaml: string, options?: Parameters<typeof read>[1]) => {
  try {
    read(yaml, options)
  } catch (error) {
    if (error instanceof AccessError) return error.problems
    throw error
  }
  throw new Error('the section was accepted')
}

/** One entry of `tokens`, on line 3. */
const entry = (fields: string) => `access:\n  tokens:\n    - { ${fields} }\n`

test('without the section nobody gets in, and what to write is said', () => {
  const access = read('namespaces: {}')
  expect(access).toMatchObject({ anonymous: { read: [] }, everyone: { read: [] }, tokens: [], cookie: undefined })
  expect(access.notes).toEqual([expect.stringContaining('nobody gets in')])
  expect(access.notes[0]).toContain('access: { anonymous: { read: ["NAMESPACE:*"] } }')
})

test('what to write names namespaces of the file, never all that may be added later', () => {
  const namespaces = ['tick', 'doc', 'room', 'inbox']
  for (const yaml of ['namespaces: {}', 'access: {}']) {
    expect(read(yaml, { namespaces }).notes[0]).toContain('{ anonymous: { read: ["tick:*", "doc:*", "room:*"] } }')
  }
  expect(problemsOf('access: open', { namespaces })).toEqual([
    'line 1: access: must be a map, as in { anonymous: { read: ["tick:*", "doc:*", "room:*"] } }',
  ])
})

test('a section that lets nobody in says so, too', () => {
  expect(read('access: {}').notes).toEqual([expect.stringContaining('access lets nobody in')])
})

test('all of it is read, and what is not written has its default', () => {
  const access = read(
    `
access:
  anonymous: { read: ["conversation:*", "tick:*"], join: ["room:*"] }
  everyone:  { read: ["user:{sub}", "all:*"] }
  tokens:
    - { jwks: https://id.example.com/jwks.json, issuer: https://id.example.com/, audience: keycast, algorithms: [ES256, EdDSA], typ: application/AT+JWT }
    - { secret: "\${JWT_SECRET:-}", algorithms: [HS256], prefix: "app|" }
    - { publicKey: rsa.pem, algorithms: [RS256], prefix: "staff|" }
  cookie: __Host-jwt
  accept: [anonymous-join]
`,
    { env: { JWT_SECRET: SECRET } },
  )
  expect(access.anonymous.read.map(({ text }) => text)).toEqual(['conversation:*', 'tick:*'])
  expect(access.everyone.publish).toEqual([])
  expect(access).toMatchObject({ claim: 'keys', cookie: '__Host-jwt', lifetimeMsMax: 8_784 * 3_600_000 })
  expect(access.tokens).toMatchObject([
    {
      name: 'access.tokens.0',
      jwks: 'https://id.example.com/jwks.json',
      audience: 'keycast',
      type: 'at+jwt',
      prefix: '',
    },
    { algorithms: ['HS256'], type: undefined, issuer: undefined, audience: undefined, prefix: 'app|' },
    { algorithms: ['RS256'], prefix: 'staff|', jwks: undefined },
  ])
  expect(access.tokens[1].keys[0].export()).toEqual(Buffer.from(SECRET))
  expect(access.tokens[2].keys[0].equals(rsa.publicKey)).toBe(true)
  expect(access.notes).toEqual(['anonymous sessions may read conversation:* tick:*, join room:*'])
})

test('an entry whose secret is empty is as if it were not there, and is said', () => {
  const access = read(`
access:
  tokens:
    - { secret: "\${JWT_SECRET:-}", algorithms: [HS256] }
    - { publicKey: ec.pem, algorithms: [ES256] }
`)
  expect(access.tokens.map(({ name }) => name)).toEqual(['access.tokens.1'])
  expect(access.notes).toEqual(['access.tokens.0 has an empty secret: it is as if it were not there'])
  const alone = read('access: { anonymous: { read: ["a:*"] }, tokens: [{ secret: "", algorithms: [HS256] }] }')
  expect(alone.notes.at(-1)).toContain('no token is accepted')
})

test('a secret and a key may be several, one of them empty, while one takes the place of the other', () => {
  const yaml = `
access:
  tokens:
    - { secret: ["\${NEW:-}", "\${OLD}"], algorithms: [HS256] }
    - { publicKey: [ec.pem, rsa.pem], algorithms: [ES256, RS256], prefix: "b|" }
`
  expect(read(yaml, { env: { OLD: SECRET } }).tokens.map(({ keys }) => keys.length)).toEqual([1, 2])
})

test.each([
  ['secret: short, algorithms: [HS256]', 'line 3: access.tokens.0.secret: has 5 bytes: at least 32'],
  [`secret: "${SECRET}", algorithms: [HS256], typ: "a b"`, 'access.tokens.0.typ: must be as the header of a token'],
  [`secret: "${SECRET}", algorithms: [ES256]`, 'line 3: access.tokens.0.algorithms: "ES256" is not for a secret'],
  [`secret: "${SECRET}", algorithms: [none]`, '"none" is not for a secret: write HS256'],
  [`secret: "${SECRET}", algorithms: []`, 'must have algorithms, as in [HS256]'],
  [`secret: "${SECRET}"`, 'must have algorithms'],
  ['secret: 12345678901234567890123456789012345, algorithms: [HS256]', 'access.tokens.0.secret: must be text'],
  ['secret: "-----BEGIN PUBLIC KEY-----\\nAAAAAAAAAAAA", algorithms: [HS256]', 'write it under publicKey'],
  ['publicKey: ec.pem, algorithms: [HS256]', '"HS256" is not for a publicKey'],
  ['publicKey: ec.pem, algorithms: [ES256, none]', '"none" is not for a publicKey'],
  ['publicKey: ec.pem, algorithms: [RS256]', 'holds a key for other algorithms: write ES256'],
  ['publicKey: ec.pem, algorithms: [ES256, RS256]', 'no key is for RS256: write ES256'],
  ['publicKey: absent.pem, algorithms: [ES256]', 'absent.pem cannot be read: ENOENT'],
  ['publicKey: private.pem, algorithms: [ES256]', 'holds a private key'],
  ['publicKey: no.pem, algorithms: [ES256]', 'holds no public key'],
  ['publicKey: weak.pem, algorithms: [RS256]', 'holds a key of 1024 bits'],
  ['publicKey: other.pem, algorithms: [ES256]', 'of a kind that no algorithm here is for'],
  ['publicKey: [], algorithms: [ES256]', 'must be 1 to 4'],
  ['jwks: http://id.example.com/, algorithms: [ES256]', 'access.tokens.0.jwks: must be https'],
  ['jwks: ftp://id.example.com/, algorithms: [ES256]', 'must be https'],
  ['jwks: /jwks.json, algorithms: [ES256]', 'must be an absolute URL'],
  ['jwks: "https://u:p@id.example.com/", algorithms: [ES256]', 'no user name and no password'],
  ['jwks: https://h/, algorithms: [HS256]', '"HS256" is not for jwks'],
  [`jwks: https://h/, secret: "${SECRET}", algorithms: [ES256]`, 'must have one of jwks, secret and publicKey'],
  ['issuer: a, algorithms: [ES256]', 'must have one of'],
  ['jwks: https://h/, algorithms: [ES256], audience: ""', 'access.tokens.0.audience: must not be empty'],
  ['jwks: https://h/, algorithms: [ES256], prefix: ""', 'access.tokens.0.prefix: must not be empty'],
  ['jwks: https://h/, algorithms: [ES256], prefix: "a\\n"', 'access.tokens.0.prefix: must hold no control characters'],
  [`jwks: https://h/, algorithms: [ES256], prefix: ${'a'.repeat(65)}`, 'must have 64 characters at most'],
  ['jwks: https://h/, algorithms: [ES256], viewer: tid', 'access.tokens.0.viewer: must be a list of claims'],
  ['jwks: https://h/, algorithms: [ES256], viewer: [tid, jti]', 'access.tokens.0.viewer.1: is another with each token'],
  ['jwks: https://h/, algorithms: ES256', 'access.tokens.0.algorithms: must be a list'],
  [
    'jwks: https://h/, algorithms: [ES256], aud: b',
    'line 3: access.tokens.0.aud: unknown field: did you mean "audience"?',
  ],
])('the entry { %s } is refused', (fields, why) => {
  expect(problemsOf(entry(fields)).join('\n')).toContain(why)
})

test.each(['http://localhost:9/', 'http://127.0.0.1/', 'http://127.1.2.3/', 'http://[::1]:9/'])(
  'on this host the keys may come over plain HTTP: %s',
  url => {
    expect(read(entry(`jwks: "${url}", algorithms: [ES256]`)).tokens).toHaveLength(1)
  },
)

test.each([
  ['access: 7', 'line 1: access: must be a map'],
  ['access:\n  anonimous: {}', 'line 2: access.anonimous: unknown field: did you mean "anonymous"?'],
  [
    'access:\n  anonymous: { raed: ["a:*"] }',
    'line 2: access.anonymous.raed: unknown: the rights are read, history, members, publish, join',
  ],
  [
    'access:\n  anonymous:\n    read:\n      - a:*\n      - "a"',
    'line 5: access.anonymous.read.1: "a" has no namespace',
  ],
  ['access:\n  anonymous: { read: ["user:{sub}"] }', 'an anonymous session has no user'],
  ['access: { claim: "" }', 'access.claim: must not be empty'],
  ['access: { tokens: {} }', 'access.tokens: must be a list'],
  ['access: { tokens: { length: { valueOf: 1, toString: 1 } } }', 'access.tokens: must be a list'],
  ['access: { claim: { length: { valueOf: 1, toString: 1 } } }', 'access.claim: must be text'],
  ['access: { tokens: [7] }', 'access.tokens.0: must be a map'],
  ['access: { maxLifetime: 5 }', 'access.maxLifetime: must be a duration'],
  ['access: { maxLifetime: 1s }', 'access.maxLifetime: must be a duration'],
  ['access: { cookie: "a b" }', "no cookie's name"],
  ['access:\n\n  claim: ${CLAIM}', 'line 3: access.claim: the environment variable CLAIM is not set'],
  ['access: {', 'line 1'],
  ['access: *unknown', 'alias'],
])('the section %j is refused', (yaml, why) => {
  expect(problemsOf(yaml).join('\n')).toContain(why)
})

test('all problems are told at once, each with its line', () => {
  const problems = problemsOf(`
access:
  anonymous:
    read: ["a", "b:*"]
  tokens:
    - secret: short
      algorithms: [HS256]
    - jwks: http://id.example.com/
      algorithms: [ES256]
      prefix: "b|"
`)
  expect(problems.map(problem => problem.split(': ').slice(0, 2).join(': '))).toEqual([
    'line 4: access.anonymous.read.0',
    'line 6: access.tokens.0.secret',
    'line 8: access.tokens.1.jwks',
  ])
})

test('lines are found behind an alias, too', () => {
  const yaml = 'rule: &rule\n  read:\n    - "a"\naccess:\n  everyone: *rule\n'
  expect(problemsOf(yaml)).toEqual([expect.stringContaining('line 3: access.everyone.read.0')])
})

test('a cookie is refused while any page may connect', () => {
  expect(problemsOf('access:\n  cookie: jwt', { origins: '*' })).toEqual([
    expect.stringContaining('line 2: access.cookie: needs GATEWAY_ORIGINS'),
  ])
})

test('a pattern for a namespace that there is not is refused: it would grant nothing and say nothing', () => {
  const namespaces = ['conversation', 'tick']
  const yaml = 'access:\n  everyone: { read: ["*:**", "tick:1", "conversaton:*"] }'
  expect(problemsOf(yaml, { namespaces })).toEqual([
    'line 2: access.everyone.read: "conversaton:*" names no namespace of this file: there are conversation, tick',
  ])
})

describe('of several issuers', () => {
  const issuers = (...prefixes: string[]): string =>
    `access:\n  tokens:\n${prefixes.map(prefix => `    - { jwks: https://h/, algorithms: [ES256]${prefix && `, prefix: ${prefix}`} }\n`).join('')}`

  test('one may go without a prefix, wherever it stands', () => {
    expect(read(issuers('', 'a', 'b')).tokens).toHaveLength(3)
    expect(read(issuers('a', '', 'b')).tokens).toHaveLength(3)
  })

  test('two without one are refused, with the reason', () => {
    expect(problemsOf(issuers('', 'a', ''))).toEqual([
      'line 5: access.tokens.2.prefix: is missing: of several entries all but one need one, or "1" of one issuer is "1" of another',
    ])
  })

  test('prefixes that are the same or begin alike are refused', () => {
    expect(problemsOf(issuers('a', 'a'))[0]).toContain('begin alike')
    expect(problemsOf(issuers('ab', '', 'a'))[0]).toContain('line 5: access.tokens.2.prefix: "a" and "ab" begin alike')
  })

  test('one whose secret is empty needs none', () => {
    const yaml = `${issuers('')}    - { secret: "", algorithms: [HS256] }\n`
    expect(read(yaml).tokens).toHaveLength(1)
  })
})

describe('strangers who write', () => {
  const rights = 'access:\n  anonymous:\n    read: ["room:*"]\n    publish: ["room:*"]\n    join: ["room:*"]\n'

  test('are refused in production, line by line, unless the file accepts them', () => {
    expect(problemsOf(rights)).toEqual([
      'line 4: access.anonymous.publish: anybody may publish without a token. Take it away, or write access.accept: [anonymous-publish]; KEYCAST_PROFILE=try is for trying',
      expect.stringMatching(/^line 5: access\.anonymous\.join: .* access\.accept: \[anonymous-join\]/),
    ])
    expect(problemsOf(`${rights}  accept: [anonymous-publish]\n`)).toHaveLength(1)
    expect(read(`${rights}  accept: [anonymous-publish, anonymous-join]\n`).anonymous.publish).toHaveLength(1)
  })

  test('are let in where it is only a try', () => {
    expect(read(rights, { profile: 'try' }).anonymous.join).toHaveLength(1)
  })

  test('are accepted by these names alone', () => {
    expect(problemsOf(`${rights}  accept: [everything]\n`).join()).toContain('line 6: access.accept.0')
  })
})

test('no refusal says a secret back', () => {
  const yaml = entry('secret: "${JWT_SECRET}", algorithms: [HS256], jwks: "https://u:${JWT_SECRET}@h/"')
  expect(problemsOf(yaml, { env: { JWT_SECRET: 's3cret' } }).join()).not.toContain('s3cret')
  expect(problemsOf(entry('secret: s3cret, algorithms: [HS256]')).join()).not.toContain('s3cret')
})

test('a file that is not there is named', () => {
  const path = join(folder, 'absent.yaml')
  expect(() => readAccess({ path, env: {}, origins: '*', profile: 'production' })).toThrow(
    `Invalid access in ${path}:\n  the file cannot be read (ENOENT)`,
  )
})

test('a viewer differs by the claims that backends commonly judge by, or by those that the entry lists', () => {
  const viewerOf = (fields: string) => read(entry(`jwks: https://h/, algorithms: [ES256]${fields}`)).tokens[0].viewer
  expect(viewerOf('')).toEqual(expect.arrayContaining(['scope', 'azp', 'tid', 'roles']))
  expect(viewerOf('')).not.toContain('keys')
  expect(viewerOf(', viewer: [scope, plan]')).toEqual(['scope', 'plan'])
  expect(viewerOf(', viewer: []')).toEqual([])
})

test('to read is to read a history and to be told of members, unless a rule of the file names these', () => {
  const byRead = (rules: string) => read(`access: { ${rules} }`).byRead
  expect(byRead('anonymous: { read: ["room:*"] }')).toEqual(['history', 'members'])
  expect(byRead('anonymous: { read: ["room:*"] }, everyone: { history: ["room:*"] }')).toEqual(['members'])
  expect(byRead('anonymous: { members: [] }, everyone: { history: [] }')).toEqual([])
  // All lines below them taken out.
  expect(byRead('anonymous: , everyone: ')).toEqual(['history', 'members'])
})
