#!/usr/bin/env node
// Writes the lists of docs/metrics.md from the metrics that running services export.
import { readFileSync, writeFileSync } from 'node:fs'
import { isMain, runCommand } from '../cli/support/command.ts'
import { wrap } from './docs/markdown.ts'

const usage = `Usage: node scripts/metrics-docs.js [--gateway URL] [--fetcher URL] [--journal URL] [--provider URL]

Writes the lists of docs/metrics.md from the /metrics of running services; npm start runs them where the defaults say.`

const page = new URL('../docs/metrics.md', import.meta.url)

/**
 * The page with every list between `<!-- metrics: NAME -->` and `<!-- end -->` written anew.
 *
 * @param exported each service's /metrics
 */
export function withLists(text: string, exported: Record<string, string>) {
  return text.replaceAll(/(<!-- metrics: (\S+) -->\n)[\s\S]*?(<!-- end -->)/g, (_, opening, name, end) => {
    return `${opening}\n${listOf(exported[name])}\n${end}`
  })
}

/** @param exposition Prometheus text format */
function listOf(exposition: string) {
  const lines = exposition.split('\n')
  const items = lines
    .filter(line => line.startsWith('# HELP '))
    .map(line => {
      const [, name, help] = /^# HELP (\S+) (.*)$/.exec(line) as RegExpExecArray
      const type = lines.find(each => each.startsWith(`# TYPE ${name} `))?.split(' ')[3]
      return `${wrap(`- \`${name}\` (${type}): ${help}`, '  ')}\n`
    })
  return items.sort().join('')
}

if (isMain(import.meta.url)) {
  const options = {
    gateway: { type: 'string', default: 'http://127.0.0.1:8081/metrics' },
    fetcher: { type: 'string', default: 'http://127.0.0.1:8082/metrics' },
    journal: { type: 'string', default: 'http://127.0.0.1:8083/metrics' },
    provider: { type: 'string', default: 'http://127.0.0.1:3000/metrics' },
  } as const
  await runCommand(
    { name: 'metrics-docs', usage, options },
    async ({ values: { gateway, fetcher, journal, provider } }) => {
      const exported: Record<string, string> = {}
      for (const [name, url] of Object.entries({ gateway, fetcher, journal, provider })) {
        exported[name] = await (await fetch(url)).text()
      }
      writeFileSync(page, withLists(readFileSync(page, 'utf8'), exported))
    },
  )
}
