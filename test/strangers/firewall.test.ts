// The rules for the kernel (deploy/nftables), with smaller figures, in a network of their own: one address is bounded, and
// another is not.
import { readFileSync } from 'node:fs'
import { run } from '../support/run.ts'

const rules = readFileSync(new URL('../../deploy/nftables/keycast.nft', import.meta.url), 'utf8')

/** Attempts of the address that is bounded, and connections of the other one. */
const ATTEMPTS = 100
const OTHERS = 30

/** One address tries so often, then another; says how many of each got through once all of the other's have. */
const clients = `
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
const open = {}
const server = createServer(({ remoteAddress }) => (open[remoteAddress] = (open[remoteAddress] ?? 0) + 1))
await once(server.listen({ port: 443, host: HOST, backlog: 1_000 }), 'listening')
const from = localAddress => connect({ port: 443, host: HOST, localAddress }).on('error', () => {})
for (let count = 0; count < ${ATTEMPTS}; count++) from(FLOODER)
await Promise.all(Array.from({ length: ${OTHERS} }, () => once(from(OTHER), 'connect')))
while ((open[OTHER] ?? 0) < ${OTHERS}) await new Promise(resolve => setImmediate(resolve))
console.log(JSON.stringify([open[FLOODER], open[OTHER]]))
process.exit()`

async function flood(changed: string, [host, flooder, other]: string[], exempt = '') {
  const program = clients
    .replaceAll('HOST', JSON.stringify(host))
    .replaceAll('FLOODER', JSON.stringify(flooder))
    .replaceAll('OTHER', JSON.stringify(other))
  const script = `
ip link set lo up && ip address add 2001:db8:0:1::1/128 dev lo && ip address add 2001:db8:0:1::2/128 dev lo
ip address add 2001:db8:0:2::1/128 dev lo
printf '%s' "$1" | nft -f - && printf '%s' "$1" | nft -f - ${exempt}
exec "$2" --input-type=module --eval "$3"`
  const args = ['--net', 'sh', '-euc', script, 'sh', changed, process.execPath, program]
  const { stdout } = await run('unshare', args)
  return JSON.parse(stdout)
}

const ipv4 = ['127.0.0.1', '127.0.0.2', '127.0.0.3']
const ipv6 = ['2001:db8:0:1::1', '2001:db8:0:1::2', '2001:db8:0:2::1']
const few = rules.replaceAll('200/second burst 4096 packets', '1/minute burst 40 packets')
const fewOpen = rules.replaceAll('ct count over 5500', 'ct count over 60')

test.each([
  ['connects too often', few, ipv4, 40],
  ['connects too often, over IPv6', few, ipv6, 40],
  ['has too many connections', fewOpen, ipv4, 60],
  ['has too many connections, over IPv6', fewOpen, ipv6, 60],
])('an address that %s is bounded, another one is not', async (_, changed, addresses, bound) => {
  expect(changed).not.toBe(rules)
  const [flooder, other] = await flood(changed, addresses)
  // One more where a minute has begun since.
  expect([bound, bound + 1]).toContain(flooder)
  expect(other).toBe(OTHERS)
})

test('as it is, and for an exempt address, it bounds nobody who connects a hundred times', async () => {
  expect(await flood(rules, ipv4)).toEqual([ATTEMPTS, OTHERS])
  const exempt = `&& nft add element inet keycast exempt4 '{ 127.0.0.2 }'`
  expect(await flood(few, ipv4, exempt)).toEqual([ATTEMPTS, OTHERS])
})
