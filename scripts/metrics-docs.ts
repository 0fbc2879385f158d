#!/usr/bin/env node
// Writes the lists of docs/metrics.md from the metrics that running services export.
import { readFileSync, writeFileSync } from 'node:fs'
import { isMain, runCommand } from '../cli/support/command.ts'
import { wrap } from './docs/markdown.ts'

const usage = `Usage: node scripts/metrics-docs.js [--gateway URL] [--fetcher URL] [--journal URL] [--provider URL]

Writes the lists of docs/metrics.md from the /metrics of running services; npm start runs them where the defaults say.`

const page = new URL('../docs/metrics.md', import.meta.url)

/** The list of the metrics that all services have, which are left out of the others. */
const SHARED = 'every service'

interface Metric {
  name: string
  type: string | undefined
  help: string
}

/**
 * The page with every list between `<!-- metrics: NAME -->` and `<!-- end -->` written anew.
 *
 * @param exported each service's /metrics
 */
export function withLists(text: string, exported: Record<string, string>) {
  const services = Object.entries(exported).map(([name, exposition]) => ({ name, metrics: metricsOf(exposition) }))
  const [first] = services
  const shared = first.metrics
    .map(metric => unnamed(metric, first.name))
    .filter(item => services.every(({ name, metrics }) => metrics.some(metric => unnamed(metric, name) === item)))
  const lists: Record<string, string[]> = { [SHARED]: shared }
  for (const { name, metrics } of services) {
    lists[name] = metrics.filter(metric => !shared.includes(unnamed(metric, name))).map(itemOf)
  }
  return text.replaceAll(/(<!-- metrics: (.+) -->\n)[\s\S]*?(<!-- end -->)/g, (_, opening, name, end) => {
    const items = lists[name].map(item => `${wrap(item, '  ')}\n`)
    return `${opening}\n${items.sort().join('')}\n${end}`
  })
}

/** @param exposition Prometheus text format */
function metricsOf(exposition: string): Metric[] {
  const lines = exposition.split('\n')
  return lines
    .filter(line => line.startsWith('# HELP '))
    .map(line => {
      const [, name, help] = /^# HELP (\S+) (.*)$/.exec(line) as RegExpExecArray
      return { name, help, type: lines.find(each => each.startsWith(`# TYPE ${name} `))?.split(' ')[3] }
    })
}

const itemOf = ({ name, type, help }: Metric) => `- \`${name}\` (${type}): ${help}`

/** An item of the list of all services. @param service in whose name the metric is */
const unnamed = ({ name, ...metric }: Metric, service: string) =>
  itemOf({ name: name.replace(`keycast_${service}_`, 'keycast_SERVICE_'), ...metric })

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
