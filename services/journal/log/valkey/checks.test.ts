import { realWorld } from '@keycast/service'
import { startValkey } from '../../../../test/support/valkey.ts'
import { LogRefused } from '../log.ts'
import { openValkeyLog } from './valkey.ts'

// Valkeys are started and killed here, which takes a busy machine seconds.

const warned: any[] = []
const report: any = { info() {}, warn: (text: string) => warned.push(text), error() {} }

let valkey: Awaited<ReturnType<typeof startValkey>>
beforeAll(async () => {
  valkey = await startValkey()
})
afterAll(() => valkey.remove())
beforeEach(() => {
  warned.length = 0
  for (const [name, value] of Object.entries(safe)) valkey.cli('CONFIG', 'SET', name, value)
})

const safe = {
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'maxmemory-policy': 'noeviction',
  'min-replicas-to-write': '0',
  'min-replicas-max-lag': '10',
}

const open = (options?: Partial<Parameters<typeof openValkeyLog>[0]>) =>
  openValkeyLog({ ...realWorld, url: valkey.url, bytesMax: 2 ** 30, report, ...options })

test('a Valkey that keeps what it acknowledges is used', async () => {
  const log = await open()
  expect(log.notReady?.()).toBeUndefined()
  expect(warned).toEqual([])
  await log.close()
})

test.each([
  ['appendonly', 'no', 'appendonly is no: a restart loses messages that were acknowledged'],
  ['appendfsync', 'everysec', 'a crash of its machine loses about the last second of acknowledged messages'],
  ['appendfsync', 'no', 'a crash of its machine loses acknowledged messages, of half a minute perhaps'],
  [
    'no-appendfsync-on-rewrite',
    'yes',
    'a crash of its machine while the file is rewritten loses acknowledged messages',
  ],
  ['maxmemory-policy', 'allkeys-lru', 'when its memory is full it drops whole histories, and nobody is told'],
])(
  'one with %s %s is refused in words that name the loss, and used where the loss is accepted',
  async (name, value, loss) => {
    valkey.cli('CONFIG', 'SET', name, value)
    await expect(open()).rejects.toThrow(loss)
    const log = await open({ allowsLoss: true })
    expect(warned).toEqual([expect.stringContaining(loss)])
    const publish = { room: 'room:1', messageId: undefined, from: '', data: Buffer.from('1') }
    const retention = { messages: 10, ageMs: 1e6, bytes: 1e6 }
    expect(await log.append([{ ...publish, retention }])).toMatchObject([{ duplicate: false }])
    await log.close()
  },
)

test('with replicas to wait for, a primary that goes on without them is refused', async () => {
  await expect(open({ replicasMin: 1 })).rejects.toThrow(
    'min-replicas-to-write is 0, below VALKEY_REPLICAS_MIN=1: a primary that is cut off from its replicas goes on',
  )
})

test('with a lag of 0 Valkey demands no replicas, whatever their number is set to', async () => {
  valkey.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')
  valkey.cli('CONFIG', 'SET', 'min-replicas-max-lag', '0')
  await expect(open({ replicasMin: 1 })).rejects.toThrow(
    'min-replicas-to-write is off, by min-replicas-max-lag 0, below VALKEY_REPLICAS_MIN=1',
  )
})

test('a failover that loses what was acknowledged is named, on the primary and on what was its replica', async () => {
  valkey.cli('CONFIG', 'SET', 'repl-diskless-sync-delay', '0') // else the first replica waits 5 s for others
  const replica = await startValkey({ settings: ['--replicaof', '127.0.0.1', String(valkey.port)] })
  while (!valkey.cli('INFO', 'replication').includes('state=online')) await new Promise(setImmediate)
  const cutOff = 'a primary acknowledges messages that no replica has, also for as long as it is cut off from them, and'
  await (await open()).close()
  expect(warned).toEqual([expect.stringContaining(`VALKEY_REPLICAS_MIN is 0, and it has 1 replica: ${cutOff}`)])

  valkey.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')
  await (await open()).close()
  expect(warned[1]).toContain('has, also for 10 s after it is cut off from them, and a failover loses them')
  await (await open({ replicasMin: 1 })).close()
  expect(warned).toHaveLength(2)

  replica.cli('REPLICAOF', 'NO', 'ONE')
  await (await open({ url: replica.url })).close()
  expect(warned[2]).toContain(`VALKEY_REPLICAS_MIN is 0, and it was a replica once: ${cutOff}`)
  await replica.remove()
})

test('one that does not say how it is set is refused, unless the loss is accepted', async () => {
  valkey.cli('ACL', 'SETUSER', 'journal', 'on', '>s3cret', '~*', '&*', '+@all', '-config')
  const url = valkey.url.replace('//', '//journal:s3cret@')
  await expect(open({ url })).rejects.toThrow('CONFIG GET is not allowed')
  const log = await open({ url, allowsLoss: true })
  await log.close()
})

test('a start waits for a replica to be made the primary; where it stays one, another start may be tried', async () => {
  const replica = await startValkey({ settings: ['--replicaof', '127.0.0.1', String(valkey.port)] })
  const options = { url: replica.url, allowsLoss: true }
  const error = await open({ ...options, startMs: 500 }).catch(error => error)
  expect(error).not.toBeInstanceOf(LogRefused)
  expect(error.message).toContain('it is a replica: VALKEY_URL must lead to the primary')
  const opening = open(options)
  await new Promise(resolve => setTimeout(resolve, 500))
  replica.cli('REPLICAOF', 'NO', 'ONE')
  await (await opening).close()
  await replica.remove()
})

test('a Valkey that was stopped is named when the start gives up', async () => {
  const gone = await startValkey()
  await gone.remove()
  await expect(open({ url: gone.url, startMs: 500 })).rejects.toThrow(
    `Valkey at 127.0.0.1:${gone.port} cannot be used: connect ECONNREFUSED`,
  )
})

test('one that may not be told to begin another file is refused as well, unless the loss is accepted', async () => {
  valkey.cli('FLUSHALL')
  valkey.cli('ACL', 'SETUSER', 'weak', 'on', 'nopass', '~*', '&*', '+@all', '-bgrewriteaof')
  const url = valkey.url.replace('//', '//weak:any@')
  await expect(open({ url })).rejects.toThrow(
    /BGREWRITEAOF failed \(NOPERM .*next start may lose acknowledged messages/,
  )
  const log = await open({ url, allowsLoss: true })
  expect(warned).toEqual([expect.stringContaining('BGREWRITEAOF failed')])
  await log.close()
})
