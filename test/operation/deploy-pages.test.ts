// The commands of docs/deploy, run as they are written: each host of a page is one of a network of their own, and clients
// come from others.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listingsOf, read } from '../../scripts/docs/markdown.ts'
import { newFolder } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { startHosts } from '../support/hosts.ts'

/** A node that is asked for what these tests ask for needs no more. */
const lean = { FETCHER_WORKERS: '1', FETCHER_WARM_UP_PULLS: '0' }

/** The listing of a page that has these words. */
function listing(page: string, words: string) {
  const found = listingsOf(read(page)).filter(text => text.includes(words))
  if (found.length !== 1) throw new Error(`${page} has ${found.length} listings with ${words}`)
  return found[0]
}

/** @returns the path of a keycast.yaml */
function configOf(text: string) {
  const folder = newFolder()
  writeFileSync(join(folder, 'keycast.yaml'), text)
  return join(folder, 'keycast.yaml')
}

/** The backend that the pages take for the reader's own. */
async function startBackend(hosts: Awaited<ReturnType<typeof startHosts>>) {
  hosts.start('10.0.0.1', 'export KEYCAST_PROFILE=try; exec node services/data-provider/main.js')
  const url = 'http://10.0.0.1:3000/conversations/1'
  await hosts.run('10.0.0.1', `until curl --silent --fail --output /dev/null ${url}; do sleep 0.2; done`)
}

/** A WebSocket that stays: says its status, or what comes first. */
const viewer = `
import WebSocket from 'ws'
const socket = new WebSocket('wss://10.0.0.5/ws', { rejectUnauthorized: false })
socket.on('message', data => console.log(JSON.parse(data).type))
socket.on('error', error => console.log(error.message))
setInterval(() => {}, 1_000)`

test('several-hosts.md: the services find each other, and clients from outside are told apart', async () => {
  const page = 'docs/deploy/several-hosts.md'
  const [first, second, gateways, proxy, operator, ...outside] = [2, 3, 4, 5, 7, 8, 9].map(host => `10.0.0.${host}`)
  const hosts = await startHosts([first, second, gateways, proxy, operator, ...outside], {
    ...lean,
    PROVIDER_HOST: '10.0.0.1',
    // The smoke test publishes without a token.
    KEYCAST_CONFIG: configOf(
      read('keycast.yaml').replace('\naccess:\n', '\naccess:\n  accept: [anonymous-publish, anonymous-join]\n'),
    ),
    // Of one address there may be three at each of two gateways: seven would be too many if all had the proxy's. Fewer
    // would refuse a check of the smoke test whose gateway has not noticed yet that the one before has closed.
    GATEWAY_SESSIONS_PER_ADDRESS_MAX: '3',
  })
  await startBackend(hosts)
  await hosts.run(first, listing(page, 'keycast secrets'))

  const fetcher = listing(page, '--only fetcher')
  await hosts.run(first, `${fetcher}\n${listing(page, '--only journal')}`)
  await hosts.run(second, fetcher.replaceAll(first, second))
  await hosts.run(gateways, listing(page, '--only gateway,gateway-2'))
  await hosts.run(proxy, listing(page, '-- proxy'))

  const state = await hosts.run(gateways, listing(page, 'keycast key'))
  expect(state).toMatch(/10\.0\.0\.[23]/)
  // From an address of its own: its last sessions may not have ended yet when the next clients are counted.
  await hosts.run(operator, listing(page, 'keycast smoke'))
  await hosts.run(operator, 'npx keycast smoke --url wss://10.0.0.5 --insecure --no-change')

  // The last of nine is let in if each is counted under its own address.
  for (const address of [...outside, second].flatMap(each => [each, each, each])) {
    const client = hosts.start(address, `exec node --input-type=module --eval "${viewer}"`)
    let said = ''
    client.stdout.setEncoding('utf8').on('data', chunk => (said += chunk))
    await eventually(() => said, `an answer to the client at ${address}`)
    expect([address, said.trim()]).toEqual([address, 'welcome'])
  }

  const status = (url: string) =>
    hosts.run(outside[0], `curl --silent --insecure --output /dev/null --write-out '%{http_code}' ${url}`)
  expect(await status('https://10.0.0.5/')).toBe('200')
  expect(await status('http://10.0.0.5/')).toBe('301')
  expect(await status('https://10.0.0.5/chat')).toBe('404')
})

test('one-host.md: everything goes on in the background, is reached through the proxy, and stops in order', async () => {
  const page = 'docs/deploy/one-host.md'
  const host = '10.0.0.2'
  const article = 'article: { source: http, url: "http://10.0.0.1:3000/conversations/{id}" }'
  const hosts = await startHosts([host], {
    ...lean,
    PROVIDER_HOST: '10.0.0.1',
    KEYCAST_CONFIG: configOf(`namespaces: { ${article} }\naccess: { anonymous: { read: ["article:*"] } }\n`),
  })
  await startBackend(hosts)
  const said = await hosts.run(host, listing(page, 'keycast smoke'))
  expect(said).not.toContain('FAILED')
  const running = /nginx: master|services\/(gateway|fetcher|journal)/
  const commands = () => hosts.run(host, `cat /proc/[0-9]*/cmdline | tr '\\0' ' '`)
  expect(await commands()).toMatch(running)
  expect(await hosts.run(host, 'npx pm2 save')).toContain('Successfully saved')

  const [, stop] = /`(npx pm2 stop [^`]+)`/.exec(read(page)) ?? []
  await hosts.run(host, stop)
  // pm2 writes down what it reads of a service, and may have waited for its end alone.
  const log = () => hosts.run(host, 'cat $HOME/.pm2/logs/gateway-out.log')
  await eventually(async () => (await log()).includes('"stopped"'), 'the end of the gateway in its log')
  await eventually(async () => !running.test(await commands()), 'the end of nginx and every service')
})
