#!/usr/bin/env node
// Writes the tables of settings in docs/operations.md from the services' own declarations.
import { readFileSync, writeFileSync } from 'node:fs'
import { settings as dataProvider } from '../services/data-provider/settings.js'
import { settings as fetcher } from '../services/fetcher/settings.js'
import { settings as gateway } from '../services/gateway/settings.js'
import { isMain, runCommand } from './support/command.js'

const usage = `Usage: node scripts/settings-docs.js

Writes the tables of settings in docs/operations.md from what the services declare.`

const page = new URL('../docs/operations.md', import.meta.url)

/** @type {Record<string, Record<string, import('../packages/service/settings/settings.js').Setting<any>>>} */
const services = { gateway, fetcher, 'data-provider': dataProvider }

/**
 * The page with every table between `<!-- settings: NAME -->` and `<!-- end -->` written anew.
 *
 * @param {string} text
 */
export function withTables(text) {
  return text.replaceAll(/(<!-- settings: (\S+) -->\n)[\s\S]*?(<!-- end -->)/g, (_, start, name, end) => {
    if (!services[name]) throw new Error(`docs/operations.md asks for the settings of ${name}, which is no service`)
    return `${start}${tableOf(services[name])}${end}`
  })
}

/** @param {Record<string, import('../packages/service/settings/settings.js').Setting<any>>} settings */
function tableOf(settings) {
  const rows = Object.values(settings).map(({ env, default: fallback, show, doc, expects, secret }) => {
    const standard = fallback === undefined || show(fallback) === '' ? '' : `\`${show(fallback)}\``
    const variable = secret ? `\`${env}\`, \`${env}_FILE\`` : `\`${env}\``
    return `| ${variable} | ${standard} | ${doc} ${expects[0].toUpperCase()}${expects.slice(1)}. |\n`
  })
  return `| variable | default | meaning |\n|---|---|---|\n${rows.join('')}`
}

if (isMain(import.meta.url)) {
  await runCommand({ name: 'settings-docs', usage }, () => {
    writeFileSync(page, withTables(readFileSync(page, 'utf8')))
  })
}
