#!/usr/bin/env node
import { readFileSync, writeFileSync } from 'node:fs'
import { common } from '@keycast/service'
import { readSettings } from '../cli/proxy/settings.ts'
import { isMain, runCommand } from '../cli/support/command.ts'
// Writes the lists of settings in docs/configuration.md from the declarations of the services, the proxy and npm start.
import type { Setting as SettingOf } from '../packages/service/settings/settings.ts'
import { settings as dataProvider } from '../services/data-provider/settings.ts'
import { settings as fetcher } from '../services/fetcher/settings.ts'
import { settings as gateway } from '../services/gateway/settings.ts'
import { settings as journal } from '../services/journal/settings.ts'
import { wrap } from './docs/markdown.ts'
import { settings as start } from './start/settings.ts'

const usage = `Usage: node scripts/settings-docs.js

Writes the lists of settings in docs/configuration.md from what the services, the proxy and npm start declare.`

const page = new URL('../docs/configuration.md', import.meta.url)
const proxySettings = new URL('../proxy/settings.sh', import.meta.url)

type Setting = SettingOf<unknown>

const lists: Record<string, () => string[]> = {
  common: () => itemsOf(common),
  gateway: () => itemsOf(gateway, common),
  fetcher: () => itemsOf(fetcher, common),
  journal: () => itemsOf(journal, common),
  'data-provider': () => itemsOf(dataProvider, common),
  // The ports and addresses of npm start are those of the services.
  'npm-start': () => itemsOf(start, common, gateway, fetcher, journal, dataProvider),
  proxy: () => proxyItems(readFileSync(proxySettings, 'utf8')),
}

/** The page with every list between `<!-- settings: NAME -->` and `<!-- end -->` written anew. */
export function withLists(text: string) {
  return text.replaceAll(/(<!-- settings: (\S+) -->\n)[\s\S]*?(<!-- end -->)/g, (_, opening, name, end) => {
    if (!lists[name]) throw new Error(`docs/configuration.md asks for the settings of ${name}, which has none`)
    const items = lists[name]().map(item => `${wrap(item, '  ')}\n`)
    return `${opening}\n${items.join('')}\n${end}`
  })
}

/** @param others have lists of their own: what is theirs stands there */
function itemsOf(settings: Record<string, Setting>, ...others: Record<string, Setting>[]) {
  const elsewhere = new Set(others.flatMap(each => Object.values(each)))
  return Object.values(settings)
    .filter(setting => !elsewhere.has(setting))
    .map(({ env, default: fallback, show, doc, expects, secret }) => {
      const standard = fallback === undefined ? '' : show(fallback)
      const variables = secret ? `**\`${env}\`** or **\`${env}_FILE\`**` : `**\`${env}\`**`
      return `- ${variables}${standard === '' ? '' : `, default \`${standard}\``}: ${`${doc} ${accepts(expects)}`.trim()}`
    })
}

/** What the head of the page says once, or the name of a setting says. */
const saidOnce = [
  /^milliseconds, or a duration such as 500ms or 2s/,
  /^bytes, or a size such as 64KiB or 4MiB/,
  /^text, or \w+: the path of a file that holds it/,
  /^a port from 0 to 65535 \(0: any free one\)/,
  /^an address of this host, or a name of it/,
  /^a path/,
  /^true or false/,
  /^a whole number of \w+, at least 1$/,
  /^a (whole )?number( of \w+)?/,
]

function accepts(expects: string) {
  const known = saidOnce.find(each => each.test(expects))
  const rest = known ? expects.replace(known, '').replace(/^(, | )/, '') : expects
  return rest && sentence(rest)
}

/** Each setting of the proxy's script: its comment, its default in the image and on a host, and its accepted form. */
export function proxyItems(script: string) {
  const onHost = readSettings({ options: {}, file: undefined, environment: {} }, '/DIRECTORY')
  const lines = script.split('\n')
  const comment: string[] = []
  const items: string[] = []
  for (const [index, line] of lines.entries()) {
    if (line === '') comment.length = 0
    if (line.startsWith('# ')) comment.push(line.slice(2))
    const [, name, written] = /^setting (PROXY_\w+) (.+)$/.exec(line) ?? []
    if (!name) continue
    if (comment.length === 0) throw new Error(`proxy/settings.sh: ${name} has no comment above it`)
    const standard = written.replaceAll(/^['"]|['"]$/g, '')
    items.push(
      `- **\`${name}\`**${defaults(standard, onHost[name])}: ${comment.join(' ')} ${accepted(lines[index + 1])}`,
    )
    comment.length = 0
  }
  return items
}

/** @param inImage as the script writes it */
function defaults(inImage: string, onHost: string) {
  // Worked out when nginx starts: the comment says how.
  if (inImage.startsWith('$(')) return ''
  const parts = [
    inImage === '' || inImage.startsWith('$') ? '' : `default \`${inImage}\``,
    onHost === inImage ? '' : `on a host \`${onHost.replace('/DIRECTORY', 'DIRECTORY')}\``,
  ]
  return parts
    .filter(Boolean)
    .map(part => `, ${part}`)
    .join('')
}

/** The accepted form of a setting, in the words of the script's own check. */
function accepted(check: string) {
  const [kind, ...words] = check.split(' ')
  if (kind === 'flag') return 'on or off.'
  if (kind === 'whole') return `From ${words[0]} to ${words[1]}.`
  if (kind === 'seconds') return `${words[0]}s to ${words[1]}s.`
  const [, said] = /'([^']+)'$/.exec(check) ?? []
  if (!said) throw new Error(`proxy/settings.sh: no check is known in ${JSON.stringify(check)}`)
  return sentence(kind === 'list' ? `${said}, separated by spaces` : said)
}

function sentence(text: string) {
  return `${text[0].toUpperCase()}${text.slice(1)}.`
}

if (isMain(import.meta.url)) {
  await runCommand({ name: 'settings-docs', usage }, () => {
    writeFileSync(page, withLists(readFileSync(page, 'utf8')))
  })
}
