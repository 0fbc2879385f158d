// The listings of docs/deploy against the code: a variable or an option that was renamed must not stay behind in a command.
import { filesOf, listingsOf, read } from './markdown.ts'

const pages = filesOf('docs/deploy')

const scripts = filesOf('scripts')

/** Variables that the shell, Node and our own tools read beside settings. */
const others = ['NODE_EXTRA_CA_CERTS', 'KEYCAST_TOKEN']

/** Every setting of every part: tests hold that page to the code. */
const settings = [...read('docs/configuration.md').matchAll(/\*\*`([A-Z][A-Z_]+)`\*\*/g)].map(([, name]) => name)

/** Commands that continue on the next line, in one. */
const commandsOf = (listing: string) => listing.replaceAll(/\\\n/g, ' ').split('\n')

test.each(pages)('%s: a variable that a command or a file sets is a setting', page => {
  const set = listingsOf(read(page)).flatMap(listing =>
    [...listing.matchAll(/(?<![\w%{])([A-Z][A-Z]*_[A-Z_]+)(?==)/g)].map(([, name]) => name),
  )
  const named = [...settings, ...others, ...settings.map(name => `${name}_FILE`)]
  expect(set.filter(name => !named.includes(name))).toEqual([])
})

test.each(pages)('%s: an option of our scripts is one that their --help has', page => {
  const unknown = listingsOf(read(page))
    .flatMap(commandsOf)
    .flatMap(command => {
      const [, script, rest = ''] = /\bscripts\/([a-z-]+\.js)\b(.*)/.exec(command.replace(/ #.*/, '')) ?? []
      if (!script) return []
      // The .js file starts the .ts file beside it.
      const known = scripts
        .filter(file => file.replace(/ts$/, 'js') === `scripts/${script}`)
        .map(read)
        .join('\n')
      // Under pm2 those before a lone -- are pm2's.
      const own = / pm2 start .* -- /.test(command) ? rest.slice(rest.indexOf(' -- ') + 3) : rest
      const given = [...own.matchAll(/ (--[a-z-]+)/g)].map(([, option]) => option)
      return given
        .filter(option => !new RegExp(`^ +${option}\\b`, 'm').test(known))
        .map(option => `${script} ${option}`)
    })
  expect(unknown).toEqual([])
})

test('the proxy of several-hosts.md is the one that its gateways trust, and listens where its table of ports says', () => {
  const page = 'docs/deploy/several-hosts.md'
  const text = read(page)
  const one = (words: string) => listingsOf(text).find(listing => listing.includes(words)) ?? ''
  const [, proxy] = /\| (10\.0\.0\.\d+) \| the proxy/.exec(text) ?? []
  expect(one('--only gateway')).toContain(`GATEWAY_TRUSTED_PROXIES=${proxy}\n`)
  expect(text).toContain('| clients | proxy | 443; 80 |')
  expect(one('scripts/proxy.js')).toMatch(/--host 0\.0\.0\.0 --https-port 443 --http-port 80 /)
})
