import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { createLog } from './log.ts'

const setup = (options?: Partial<Parameters<typeof createLog>[0]>) => {
  const lines: string[] = []
  const log = createLog({ name: 'keycast-test', destination: { write: line => lines.push(line) }, ...options })
  return { log, lines, last: () => JSON.parse(lines[lines.length - 1]) }
}

test('a line is one JSON object with level, time and name', () => {
  const { log, last } = setup()
  log.info({ port: 1 }, 'listening')
  expect(last()).toMatchObject({ level: 'info', name: 'keycast-test', port: 1, msg: 'listening' })
  expect(last().time).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/)
})

test('lines below the level are not logged', () => {
  const { log, lines } = setup({ level: 'warn' })
  log.info('quiet')
  log.warn('loud')
  expect(lines).toHaveLength(1)
})

test('an error keeps what explains it, without the request that libraries attach', () => {
  const { log, last } = setup()
  const cause = new Error('inner')
  const error = Object.assign(new Error('outer', { cause }), {
    code: 'ECONNRESET',
    config: { headers: { authorization: 'Bearer s3cret' } },
  })
  log.error({ err: error }, 'failed')
  expect(last().err).toMatchObject({ type: 'Error', message: 'outer', code: 'ECONNRESET', cause: { message: 'inner' } })
  expect(last().err.stack).toContain('log.test.ts')
  expect(JSON.stringify(last())).not.toContain('s3cret')
})

test('headers and tokens are not logged', () => {
  const { log, lines } = setup()
  log.info({ headers: { authorization: 's3cret' }, token: 's3cret', lease: { headers: { cookie: 's3cret' } } }, 'oops')
  expect(lines.join('')).not.toContain('s3cret')
})

test('the pretty format is words, not JSON', async () => {
  const lines = new PassThrough({ encoding: 'utf8' })
  createLog({ name: 'keycast-test', format: 'pretty', destination: lines }).info({ port: 8080 }, 'listening')
  const [written] = await once(lines, 'data')
  expect(written).toMatch(/INFO.*listening/)
  expect(written).toContain('port: 8080')
})
