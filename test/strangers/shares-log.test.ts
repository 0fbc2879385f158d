// One user has all kept in the log that they can, over a WebSocket at one gateway and an event stream at another. They are
// given their share once, also after the journals were killed; others publish on; and when clients have filled all that
// they may, there is room for backends and revocations.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { SignJWT } from 'jose'
import { atEnd } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { joinRooms } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'
import { startValkey } from '../support/valkey.ts'

const JWT_SECRET = randomBytes(48).toString('base64')
const BYTES_MAX = 2 ** 20
const TEXT = 'x'.repeat(4_000)

/** Of what clients may fill, what a message takes with its id and all beside its data. */
const MESSAGE_SHARE = (TEXT.length + 250) / ((BYTES_MAX * 15) / 16)

const access = {
  anonymous: { read: ['room:*'], publish: ['room:*'] },
  everyone: { publish: ['room:*'] },
  tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }],
}

const signed = (sub: string) =>
  new SignJWT({})
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(sub)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(Buffer.from(JWT_SECRET))

/** @param sub nobody: a guest */
async function headersOf(address: string, sub?: string) {
  const given = { 'x-forwarded-for': address }
  return sub === undefined ? given : { ...given, authorization: `Bearer ${await signed(sub)}` }
}

/** Publishes as often as it is kept. @returns how often that was */
async function fill(publish: () => Promise<{ type: string; code?: string; retryAfterMs?: number }>) {
  for (let kept = 0; ; kept++) {
    const answer = await publish()
    if (answer.type === 'published') continue
    expect(answer).toMatchObject({ retryAfterMs: 1_000 })
    return { kept, code: answer.code }
  }
}

/** Publishes until the journal says what became of it, each time when the answer before says. */
async function answerOf(publish: () => Promise<any>) {
  for (;;) {
    const answer = await publish()
    if (!['publish_unknown', 'journal_unavailable', 'rate_limited'].includes(answer.code)) return answer
    await delay(answer.retryAfterMs ?? 0)
  }
}

/** A session over an event stream. */
async function openStream(http: string, headers: Record<string, string>) {
  const closing = new AbortController()
  atEnd(() => closing.abort())
  const response = await fetch(`${http}/v1/stream`, { headers, signal: closing.signal })
  const asked = new Map<number, (answer: any) => void>()
  let text = ''
  let lastId = 0
  const read = async () => {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      const lines = text.split('\n')
      text = lines.pop() as string
      for (const line of lines) {
        if (!line.startsWith('data:')) continue
        const answer = JSON.parse(line.slice('data:'.length))
        asked.get(answer.id)?.(answer)
      }
    }
  }
  read().catch(() => {}) // it ends with the test
  return async (key: string, data: unknown): Promise<any> => {
    const id = ++lastId
    const answered = new Promise(resolve => asked.set(id, resolve))
    await fetch(`${http}/v1/stream/send`, {
      method: 'POST',
      headers: { ...headers, 'keycast-stream': response.headers.get('keycast-stream') as string },
      body: JSON.stringify({ type: 'publish', key, data, id }),
    })
    return answered
  }
}

const valkey = await startValkey()
atEnd(() => valkey.remove())

test.each([
  ['lmdb', { journals: 1, journalEnv: {} }],
  ['valkey', { journals: 2, journalEnv: { JOURNAL_LOG: 'valkey', VALKEY_URL: valkey.url, VALKEY_ALLOW_LOSS: 'true' } }],
])('a user has one share of the log over all doors and restarts, in %s', async (_, { journals: count, journalEnv }) => {
  const { gateways, journals } = await startRooms({
    namespaces: { room: {}, news: { publish: 'server' } },
    access,
    gateways: 2,
    journals: count,
    journalEnv: { ...journalEnv, JOURNAL_BYTES_MAX: '1MiB' },
    env: { JWT_SECRET },
  })
  const [one, other] = gateways
  const ofAnn = await headersOf('192.0.2.1', 'ann')
  const publishAs = async (headers: Record<string, string>) => {
    const client = await joinRooms(one.url, { headers })
    return (key: string) => client.publish(key, TEXT)
  }
  const ann = await publishAs(ofAnn)
  const atStream = await openStream(other.http, ofAnn)
  const bob = await publishAs(await headersOf('192.0.2.2', 'bob'))
  const guest = await publishAs(await headersOf('192.0.2.3'))

  expect((await atStream('room:2', TEXT)).type).toBe('published')
  const first = await fill(() => ann('room:1'))
  const second = await fill(() => atStream('room:2', TEXT))
  expect([first.code, second.code]).toEqual(['capacity', 'capacity'])
  const share = (first.kept + 1 + second.kept) * MESSAGE_SHARE
  expect(share).toBeGreaterThan(1 / 9 - 2 * MESSAGE_SHARE)
  expect(share).toBeLessThan(1 / 9 + 2 * MESSAGE_SHARE)
  for (const publish of [bob, guest]) expect((await publish('room:1')).type).toBe('published')

  for (const { process } of journals) await process().kill()
  await Promise.all(journals.map(({ restart }) => restart()))
  for (const publish of [() => ann('room:1'), () => atStream('room:3', TEXT)]) {
    expect(await answerOf(publish)).toMatchObject({ type: 'error', code: 'capacity' })
  }
  for (const publish of [bob, guest]) {
    expect((await answerOf(() => publish('room:3'))).type).toBe('published')
  }
  await eventually(async () => {
    const { body } = await journals[0].internal('/metrics')
    const [, users] = /^keycast_journal_log_charged_bytes\{payer="users"\} (\d+)$/m.exec(body.toString()) ?? []
    return Number(users) > (BYTES_MAX * 15) / 16 / 10
  }, 'the journal saying what is kept of users')

  // So many users fill what clients may that the next one finds nothing.
  for (let n = 10; ; n++) {
    const publish = await publishAs(await headersOf(`192.0.2.${n}`, `user-${n}`))
    const { kept } = await fill(() => publish('room:4'))
    if (kept === 0) break
  }
  expect((await one.call('/v1/publish', { key: 'news:1', data: TEXT })).status).toBe(200)
  expect((await one.call('/v1/publish', { key: 'room:1', data: TEXT })).status).toBe(200)
  expect(
    (await one.call('/v1/revoke', { sub: 'ann', before: Math.floor(Date.now() / 1_000) + 10 })).json(),
  ).toMatchObject({ reach: 'every gateway' })
})
