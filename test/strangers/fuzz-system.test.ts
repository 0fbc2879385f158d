// Absurd bytes to real processes, at every port at once: WebSocket, its frames, HTTP, tokens and a provider's keys, a
// backend's answers, a gateway's requests to the fetcher and the journal. No process ends or grows, no error is
// unforeseen, and a client beside it is served all along.
// An hour of it: FUZZ_SECONDS=3600 npm run test:e2e -- --testPathPatterns fuzz
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { BYTES_SUBPROTOCOL, JSON_SUBPROTOCOL } from '@keycast/protocol'
import fc from 'fast-check'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { Dealer, Push } from 'zeromq'
import { atEnd } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { pause } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { type Absurd, absurdParts } from '../support/fuzz/absurd.ts'
import { absurdHttp } from '../support/fuzz/absurd-http.ts'
import { keyResponses, SECRET } from '../support/fuzz/doors-access.ts'
import { firsts, responses } from '../support/fuzz/doors-backend.ts'
import { seconds, seed, timeoutMs } from '../support/fuzz/length.ts'
import { LINK, NUMBER, toFetcher, toJournal } from '../support/fuzz/messages.ts'
import { fuzzPorts } from '../support/fuzz/open-ports.ts'
import { ask } from '../support/http.ts'
import type { NamespaceSettings } from '../support/keycast-yaml.ts'
import { MIB, watchMemory } from '../support/memory.ts'
import { isAlive } from '../support/processes.ts'
import { startSystem } from '../support/system.ts'

const answers = fc.sample(absurdHttp(responses, firsts), { numRuns: 2_000, seed })
let asked = 0
const backend = createServer(socket => {
  socket.on('error', () => {})
  socket.on('data', data => {
    const isWell = data.toString('latin1').includes('/well/')
    const body = `{"revision":${asked}}`
    const well = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const absurd = answers[asked++ % answers.length].bytes
    if (isWell) socket.write(well)
    else socket.end(absurd)
  })
})
await once(backend.listen(0, '127.0.0.1'), 'listening')
atEnd(() => backend.close())
const origin = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`

const namespaces: Record<string, NamespaceSettings> = {
  conversation: { url: `${origin}/absurd/{id}`, refresh: '100ms', timeout: '1s' },
  well: { url: `${origin}/well/{id}`, refresh: '100ms' },
  told: { url: `${origin}/well/{id}`, refresh: 0 },
  room: { source: 'journal', members: 'named' },
}
/** So many providers of absurd keys as `access.tokens` takes beside two others: a gateway asks each of them seldom. */
const PROVIDERS = 14

const keys = fc.sample(keyResponses, { numRuns: 2_000, seed })
let keysAsked = 0
const good = await generateKeyPair('ES256')
const goodSet = JSON.stringify({ keys: [{ ...(await exportJWK(good.publicKey)), kid: 'good' }] })
const provider = createServer(socket => {
  socket.on('error', () => {})
  socket.once('data', data => {
    const isGood = data.toString('latin1').startsWith('GET /good ')
    const right = `HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${goodSet.length}\r\n\r\n${goodSet}`
    socket.end(isGood ? right : keys[keysAsked++ % keys.length])
  })
})
await once(provider.listen(0, '127.0.0.1'), 'listening')
atEnd(() => provider.close())
const issuers = [...Array.from({ length: PROVIDERS }, (_, n) => String(n)), 'good'].map(name => ({
  jwks: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/${name}`,
  issuer: `https://id.example/${name}`,
  audience: 'keycast',
  algorithms: ['ES256', 'RS256', 'EdDSA'],
  prefix: `${name}|`,
}))

const access = {
  anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] },
  maxLifetime: '366d',
  tokens: [
    ...issuers,
    { secret: SECRET, issuer: 'https://id.example/', audience: 'keycast', algorithms: ['HS256'], prefix: 'app|' },
  ],
}
const { gateways, fetchers, journal } = await startSystem({ namespaces, access, journals: 1 })
const [gateway] = gateways
const [fetcher] = fetchers
const processes = [gateway.process, fetcher.process, journal.process()]

/** What a process may take beside what it has once it listens. Beyond it something grows with what strangers send. */
const GROWTH_BYTES_MAX = 400 * MIB

const endsAt = performance.now() + seconds * 1_000
const isOn = () => performance.now() < endsAt
const ports = fuzzPorts({ url: gateway.url, isOn })
const { repeat } = ports

/** @param token that is shown over HTTP @param from whose tries are counted apart @returns the status */
const statusFor = async (token: string, from: string) => {
  const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': from }
  return (await ask(`${gateway.http}/v1/values/well:1`, { headers })).status
}

const inBase64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Tokens in a right form that name keys of all providers, so that each is asked for its absurd ones again and again. */
async function keyNames() {
  let count = 0
  const named = fc.record({
    provider: fc.nat(PROVIDERS - 1),
    alg: fc.constantFrom('ES256', 'RS256', 'EdDSA'),
    kid: fc.constantFrom('ES256', 'RS256', 'EdDSA', 'another', undefined),
  })
  return repeat(named, async ({ provider, alg, kid }) => {
    const { issuer, audience } = issuers[provider]
    const iat = Math.floor(Date.now() / 1_000)
    const payload = { iss: issuer, aud: audience, sub: 'ann', iat, exp: iat + 60 }
    const token = [inBase64url({ alg, kid }), inBase64url(payload), 'A'.repeat(86)].join('.')
    const status = await statusFor(token, `198.51.${count++ % 100}.7`)
    if (status !== 401 && status !== 503) throw new Error(`a token that nobody signed was answered with ${status}`)
    await pause(5)
  })
}

/** A gateway that a node takes for one of its own. */
async function linkTo(node: string, { requests, beats }: typeof toFetcher) {
  const [, requestsPort, answersPort] = node.split(':')
  const push = new Push({ linger: 0, sendTimeout: 500 })
  const dealer = new Dealer({ linger: 0, sendTimeout: 500 })
  push.connect(`tcp://127.0.0.1:${requestsPort}`)
  dealer.connect(`tcp://127.0.0.1:${answersPort}`)
  let link = 0
  let number = 0
  const own = ({ parts: [head = Buffer.alloc(0), ...rest] }: Absurd, at: number) => {
    const text = head.toString().replaceAll(LINK, `fuzz-${link}`)
    const numbered = text.replace(`"number":${NUMBER}`, `"number":${at}`)
    return [numbered === head.toString() ? head : Buffer.from(numbered), ...rest]
  }
  const introduce = async () => {
    link++
    number = 0
    const [[, [beat]]] = beats
    await dealer.send(own({ parts: [beat] } as Absurd, 0))
    await pause(20)
  }
  await introduce()
  const message = fc.tuple(absurdParts(requests), absurdParts(beats), fc.nat(9))
  const count = await repeat(message, async ([request, beat, n]) => {
    try {
      if (n === 0) await introduce()
      if (n === 1) await dealer.send(own(beat, number).slice(0, 1))
      else await push.send(own(request, ++number))
    } catch {
      // The node cut this peer off, as it may.
      await pause(100)
    }
    await pause(2)
  })
  push.close()
  dealer.close()
  return count
}

const goodToken = () =>
  new SignJWT({ keys: { read: ['well:*'] } })
    .setProtectedHeader({ alg: 'ES256', kid: 'good' })
    .setIssuer('https://id.example/good')
    .setAudience('keycast')
    .setSubject('ann')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(good.privateKey)

/** A client that asks for nothing absurd. */
async function bystander() {
  const client = await connect(gateway.url)
  await client.subscribe(['well:1'])
  let served = 0
  while (isOn()) {
    const { revision = -1 } = client.of('well:1')
    await client.reaches('well:1', revision + 1)
    const published = await client.request({ type: 'publish', key: 'room:by', data: served })
    if (published.type !== 'published') throw new Error(`a publish was answered with ${JSON.stringify(published)}`)
    const status = await statusFor(await goodToken(), '203.0.113.7')
    if (status !== 200) throw new Error(`a good token was answered with ${status}`)
    served++
    await pause(20)
  }
  client.close()
  return served
}

test(
  `for ${seconds} s absurd bytes go to every port, no process ends, and a client beside is served`,
  async () => {
    const growth = processes.map(({ pid }) => watchMemory(pid))
    const counts = {
      'sessions in JSON': ports.sessions(JSON_SUBPROTOCOL),
      'sessions in bytes': ports.sessions(BYTES_SUBPROTOCOL),
      frames: ports.frames(),
      tokens: ports.tokens(),
      'names of keys': keyNames(),
      'public port': ports.requests('clients'),
      'internal port': ports.requests('backends', Number(new URL(gateway.internal).port)),
      fetcher: linkTo(fetcher.node, toFetcher),
      journal: linkTo(journal.node, toJournal as typeof toFetcher),
      'bystander served': bystander(),
    }
    for (const [what, count] of Object.entries(counts)) show(`${what}: ${await count}, seed ${seed}`)
    show(`the backend answered ${asked} requests`)
    for (const process of processes) expect([process.name, isAlive(process.pid)]).toEqual([process.name, true])
    show(`the providers answered ${keysAsked} requests with absurd keys`)
    expect(keysAsked).toBeGreaterThanOrEqual(PROVIDERS)
    for (const [index, grown] of growth.entries()) {
      const bytes = grown()
      show(`${processes[index].name} has grown by ${Math.round(bytes / MIB)} MiB`)
      expect(bytes).toBeLessThan(GROWTH_BYTES_MAX)
    }
    expect(await gateway.metric('keycast_gateway_unexpected_errors_total')).toBe(0)
    expect(await fetcher.metric('keycast_fetcher_unexpected_errors_total')).toBe(0)
    const metrics = (await journal.internal('/metrics')).body.toString()
    expect(metrics.match(/^keycast_journal_unexpected_errors_total\S* [1-9].*$/gm)).toBeNull()
    expect(await counts['bystander served']).toBeGreaterThan(0)
  },
  timeoutMs,
)
