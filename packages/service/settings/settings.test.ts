import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { common, readSettings, renderHelp, SettingsError, setting } from './settings.ts'

const settings = {
  ...common,
  port: setting.port({ env: 'PORT', default: 8080, doc: 'Where to listen.' }),
  host: setting.host({ env: 'HOST', default: '127.0.0.1', doc: 'The address.' }),
  cacheBytesMax: setting.bytes({ env: 'CACHE_BYTES_MAX', default: 4_194_304, min: 1_024, doc: 'The cache.' }),
  heartbeatMs: setting.milliseconds({ env: 'HEARTBEAT_MS', default: 25_000, min: 100, max: 60_000, doc: 'The beat.' }),
  keysMax: setting.integer({ env: 'KEYS_MAX', default: 10, min: 1, unit: 'keys', doc: 'The keys.' }),
  errorRate: setting.ratio({ env: 'ERROR_RATE', default: 0, doc: 'The errors.' }),
  anonymous: setting.flag({ env: 'ANONYMOUS', default: false, doc: 'The stranger.' }),
  token: setting.secret({ env: 'API_TOKEN', doc: 'The token.' }),
}
const service = { name: 'keycast-test', about: 'Serves tests.' }

const read = (env: NodeJS.ProcessEnv, argv: string[] = []) => readSettings(settings, { ...service, env, argv })

const problemsOf = (env: NodeJS.ProcessEnv, argv?: string[]) => {
  try {
    read(env, argv)
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
  throw new Error('the settings were accepted')
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'keycast-settings-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const secretFile = (content: string) => {
  const path = join(folder, 'secret')
  writeFileSync(path, content)
  return path
}

test('a setting that is not set has its default', () => {
  expect(read({})).toEqual({
    profile: 'production',
    logLevel: 'info',
    logFormat: 'json',
    certificatesPath: '',
    shutdownGraceMs: 10_000,
    port: 8080,
    host: '127.0.0.1',
    cacheBytesMax: 4_194_304,
    heartbeatMs: 25_000,
    keysMax: 10,
    errorRate: 0,
    anonymous: false,
    token: undefined,
  })
})

test('a setting has the type of its kind, for the program and for the type check', () => {
  const config = read({
    LOG_LEVEL: 'debug',
    PORT: '0',
    HOST: '::1',
    CACHE_BYTES_MAX: '64KiB',
    HEARTBEAT_MS: '2s',
    KEYS_MAX: '7',
    ERROR_RATE: '0.25',
    ANONYMOUS: '1',
    API_TOKEN: 's3cret',
  })
  const numbers: number[] = [config.port, config.cacheBytesMax, config.heartbeatMs, config.keysMax, config.errorRate]
  expect(numbers).toEqual([0, 65_536, 2_000, 7, 0.25])
  const others: [string, boolean, string | undefined] = [config.host, config.anonymous, config.token]
  expect(others).toEqual(['::1', true, 's3cret'])
  const level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent' = config.logLevel
  expect(level).toBe('debug')
  // @ts-expect-error a port is no text
  config.port.toUpperCase
  // @ts-expect-error a misspelt setting does not exist
  expect(config.prot).toBeUndefined()
})

test('an empty variable counts as unset, as compose files leave them', () => {
  expect(read({ PORT: '', API_TOKEN: '', API_TOKEN_FILE: '' })).toMatchObject({ port: 8080, token: undefined })
})

test('one error names every bad value and every unknown argument', () => {
  const problems = problemsOf(
    {
      LOG_LEVEL: 'loud',
      PORT: '65536',
      CACHE_BYTES_MAX: '1',
      HEARTBEAT_MS: 'soon',
      KEYS_MAX: '1.5',
      ERROR_RATE: '2',
      ANONYMOUS: 'yes',
    },
    ['--port=1'],
  )
  expect(problems).toEqual([
    'unknown argument --port=1: settings are environment variables',
    'LOG_LEVEL=loud: must be one of fatal, error, warn, info, debug, trace, silent',
    'PORT=65536: must be a port from 0 to 65535 (0: any free one)',
    'CACHE_BYTES_MAX=1: must be bytes, or a size such as 64KiB or 4MiB, at least 1KiB',
    'HEARTBEAT_MS=soon: must be milliseconds, or a duration such as 500ms or 2s, from 100ms to 1m',
    'KEYS_MAX=1.5: must be a whole number of keys, at least 1',
    'ERROR_RATE=2: must be a number from 0 to 1',
    'ANONYMOUS=yes: must be true or false',
  ])
  expect(() => read({ PORT: 'x', KEYS_MAX: '0' })).toThrow(/keycast-test(.|\n)*PORT=x(.|\n)*KEYS_MAX=0/)
})

test('of a long value only the start is said back', () => {
  const [problem] = problemsOf({ PORT: 'x'.repeat(100_000) })
  expect(problem).toMatch(/^PORT=x+…: must be a port/)
  expect(problem.length).toBeLessThan(200)
})

test.each(['-1', '1e3', '80 ', 'NaN', '0x50'])('the port %j is refused', text => {
  expect(problemsOf({ PORT: text })).toHaveLength(1)
})

test('a secret may lie in a file, whose last newline is no part of it', () => {
  expect(read({ API_TOKEN_FILE: secretFile(' from a file \n') }).token).toBe(' from a file ')
})

test('a secret given twice, or in a file that cannot be used, is refused and not printed', () => {
  const both = problemsOf({ API_TOKEN: 's3cret', API_TOKEN_FILE: secretFile('s3cret') })
  expect(both).toEqual(['API_TOKEN and API_TOKEN_FILE are both set: unset one'])
  expect(problemsOf({ API_TOKEN_FILE: secretFile('\n') })[0]).toContain('the file is empty')
  expect(problemsOf({ API_TOKEN_FILE: join(folder, 'absent') })[0]).toContain('ENOENT')
})

test('help names every setting, what it accepts and its default', () => {
  const help = renderHelp(settings, service)
  expect(help).toContain('keycast-test: Serves tests.')
  for (const { env, doc } of Object.values(settings)) {
    expect(help).toContain(env)
    expect(help).toContain(doc)
  }
  expect(help).toContain('default: 4MiB')
  expect(help).toContain('a whole number of keys, at least 1; default: 10')
  expect(help).toContain('API_TOKEN_FILE')
})

describe('as a command line program', () => {
  const module = new URL('./settings.ts', import.meta.url).href
  const program = `import { readSettings, setting } from '${module}'
    readSettings({ token: setting.secret({ env: 'API_TOKEN', doc: 'T.' }), port: setting.port({ env: 'PORT', default: 1, doc: 'P.' }) },
      { name: 'keycast-test', about: 'Serves tests.' })
    console.log('went on')`

  const run = (env: NodeJS.ProcessEnv, argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
    new Promise(resolve => {
      const nodeArguments = ['--input-type=module', '--eval', program, '--', 'main.js', ...argv]
      execFile(process.execPath, nodeArguments, { env }, (error, stdout, stderr) => {
        resolve({ code: Number(error?.code ?? 0), stdout, stderr })
      })
    })

  test('--help prints the settings, no secret among them, and exits with 0', async () => {
    const { code, stdout } = await run({ API_TOKEN: 's3cret' }, ['--help'])
    expect(code).toBe(0)
    expect(stdout).toContain('PORT')
    expect(stdout).not.toMatch(/s3cret|went on/)
  })

  test('bad values are printed and exit with 2, before anything starts', async () => {
    const { code, stdout, stderr } = await run({ PORT: 'x', API_TOKEN: 's3cret' }, [])
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^Invalid settings of keycast-test .*\n {2}PORT=x: must be a port.*\n$/)
  })
})

test('a text may have to keep a form, and says so as any other setting does', () => {
  const check = (text: string) => (text === 'x' ? undefined : 'must be x')
  const one = {
    letter: setting.text({ env: 'LETTER', default: 'x', doc: 'A letter.', expects: 'the letter x', check }),
  }
  expect(readSettings(one, { ...service, env: { LETTER: 'x' } })).toEqual({ letter: 'x' })
  expect(() => readSettings(one, { ...service, env: { LETTER: 'y' } })).toThrow('LETTER=y: must be x')
  expect(renderHelp(one, service)).toContain('the letter x; default: x')
})

test('settings that are right by themselves may be wrong together', () => {
  const check = ({ port }: { port: number }) => (port === 1 ? ['PORT=1 is no good here'] : [])
  const readWith = (env: NodeJS.ProcessEnv) => readSettings(settings, { ...service, check, env })
  expect(readWith({}).port).toBe(8080)
  expect(() => readWith({ PORT: '1' })).toThrow('PORT=1 is no good here')
})

test.each(['0.0.0.0', '::', '10.0.0.4', 'gateway', 'gateway-1.example.org', 'my_host', 'localhost'])(
  'a service may be told to listen on %s',
  text => {
    const { host } = settings
    expect(readSettings({ host }, { ...service, env: { HOST: text } })).toEqual({ host: text })
  },
)

test.each(['10.0.0.4:8080', '10.0.0', '10.0.0.256', 'http://gateway', 'a b', '[::1]', '*'])(
  'a service is not told to listen on %j',
  text => {
    expect(problemsOf({ HOST: text })).toEqual([
      `HOST=${text}: must be an address of this host, or a name of it, without a port`,
    ])
  },
)
