// The tests of Prometheus's rules as promtool runs them soonest: each with the rules that it asks about, and no others.
// With all of them promtool evaluates sixty rules per step over hours, for the one alert that a test looks at.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'

interface Rule {
  alert?: string
  record?: string
  expr: string
}

type Groups = { name: string; rules: Rule[] }[]

/**
 * Writes one file per test, with a file of the rules it needs beside it.
 *
 * @param prometheusFolder with rules/ and tests/
 * @param folder the files go there
 * @returns paths, for `promtool test rules`
 */
export function writeRuleTests(prometheusFolder: string, folder: string): string[] {
  const groups: Groups = yamlFiles(join(prometheusFolder, 'rules')).flatMap(({ file, content: { groups } }) =>
    // Two files may each have a group of one name; here all are in one.
    groups.map((group: Groups[0]) => ({ ...group, name: `${file}: ${group.name}` })),
  )
  return yamlFiles(join(prometheusFolder, 'tests')).flatMap(({ file, content: { tests, ...shared } }) =>
    tests.map((test: any, index: number) => {
      const name = `${file.replace('.yml', '')}-${index}`
      writeFileSync(join(folder, `${name}.rules`), toYaml({ groups: neededBy(test, groups) }))
      // promtool names the file that fails, and not the test in it.
      const path = join(folder, `${name} ${test.name.replaceAll('/', ' ').slice(0, 120)}.yml`)
      writeFileSync(path, toYaml({ ...shared, rule_files: [`${name}.rules`], tests: [test] }))
      return path
    }),
  )
}

/** The rules that a test asks about, with those whose results they read, in their groups and order. */
function neededBy(
  {
    name,
    alert_rule_test = [],
    promql_expr_test = [],
  }: { name: string; alert_rule_test?: { alertname: string }[]; promql_expr_test?: { expr: string }[] },
  groups: Groups,
): Groups {
  const rules = groups.flatMap(({ rules }) => rules)
  const needed = new Set<Rule>()
  const need = (rule: Rule) => {
    if (needed.has(rule)) return
    needed.add(rule)
    needAllIn(rule.expr)
  }
  const needAllIn = (expression: string) => {
    for (const rule of rules) if (reads(expression, rule)) need(rule)
  }
  for (const { alertname } of alert_rule_test) {
    const alert = rules.find(({ alert }) => alert === alertname)
    // promtool takes an alert that does not exist for one that does not fire.
    if (!alert) throw new Error(`“${name}” expects something of ${alertname}, which no rule has`)
    need(alert)
  }
  for (const { expr } of promql_expr_test) needAllIn(expr)
  return groups
    .map(group => ({ ...group, rules: group.rules.filter(rule => needed.has(rule)) }))
    .filter(({ rules }) => rules.length > 0)
}

/** Whether an expression reads what a rule writes: a recorded series by its name, an alert as ALERTS. */
function reads(expression: string, { alert, record = '' }: Rule) {
  if (alert !== undefined) {
    return [...expression.matchAll(/\bALERTS(?:_FOR_STATE)?\b(?:\{(.*?)\})?/g)].some(([, labels = '']) => {
      const [, equals] = /\balertname="(\w+)"/.exec(labels) ?? []
      const [, pattern] = /\balertname=~"([^"]*)"/.exec(labels) ?? []
      return equals !== undefined ? equals === alert : new RegExp(`^(?:${pattern ?? '.*'})$`).test(alert)
    })
  }
  const patterns = [...expression.matchAll(/__name__=~"([^"]*)"/g)].map(([, pattern]) => new RegExp(`^(?:${pattern})$`))
  const names = [...expression.matchAll(/[a-zA-Z_:][\w:]*/g)].map(([name]) => name)
  return names.includes(record) || patterns.some(pattern => pattern.test(record))
}

// Every scalar is kept as it is written: `0x60`, sixty zeros for promtool, is a number to JavaScript.
const asWritten = { schema: 'failsafe' } as const

function yamlFiles(folder: string): { file: string; content: any }[] {
  return readdirSync(folder).map(file => ({
    file,
    content: parse(readFileSync(join(folder, file), 'utf8'), asWritten),
  }))
}

function toYaml(content: object) {
  return stringify(content, { ...asWritten, lineWidth: 0 })
}
