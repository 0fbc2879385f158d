// The tests of Prometheus's rules as promtool runs them soonest: each with the rules that it asks about, and no others.
// With all of them promtool evaluates sixty rules per step over hours, for the one alert that a test looks at.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'

/** @typedef {{ alert?: string, record?: string, expr: string }} Rule */
/** @typedef {{ name: string, rules: Rule[] }[]} Groups */

/**
 * Writes one file per test, with a file of the rules it needs beside it.
 *
 * @param {string} prometheusFolder with rules/ and tests/
 * @param {string} folder the files go there
 * @returns {string[]} paths, for `promtool test rules`
 */
export function writeRuleTests(prometheusFolder, folder) {
  /** @type {Groups} */
  const groups = yamlFiles(join(prometheusFolder, 'rules')).flatMap(({ file, content: { groups } }) =>
    // Two files may each have a group of one name; here all are in one.
    groups.map((/** @type {Groups[0]} */ group) => ({ ...group, name: `${file}: ${group.name}` })),
  )
  return yamlFiles(join(prometheusFolder, 'tests')).flatMap(({ file, content: { tests, ...shared } }) =>
    tests.map((/** @type {any} */ test, /** @type {number} */ index) => {
      const name = `${file.replace('.yml', '')}-${index}`
      writeFileSync(join(folder, `${name}.rules`), toYaml({ groups: neededBy(test, groups) }))
      // promtool names the file that fails, and not the test in it.
      const path = join(folder, `${name} ${test.name.replaceAll('/', ' ').slice(0, 120)}.yml`)
      writeFileSync(path, toYaml({ ...shared, rule_files: [`${name}.rules`], tests: [test] }))
      return path
    }),
  )
}

/**
 * The rules that a test asks about, with those whose results they read, in their groups and order.
 *
 * @param {{ name: string, alert_rule_test?: { alertname: string }[], promql_expr_test?: { expr: string }[] }} test
 * @param {Groups} groups
 * @returns {Groups}
 */
function neededBy({ name, alert_rule_test = [], promql_expr_test = [] }, groups) {
  const rules = groups.flatMap(({ rules }) => rules)
  /** @type {Set<Rule>} */
  const needed = new Set()
  const need = (/** @type {Rule} */ rule) => {
    if (needed.has(rule)) return
    needed.add(rule)
    needAllIn(rule.expr)
  }
  const needAllIn = (/** @type {string} */ expression) => {
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

/** Whether an expression reads what a rule writes: a recorded series by its name, an alert as ALERTS. @param {string} expression @param {Rule} rule */
function reads(expression, { alert, record = '' }) {
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
const asWritten = /** @type {const} */ ({ schema: 'failsafe' })

/** @param {string} folder @returns {{ file: string, content: any }[]} */
function yamlFiles(folder) {
  return readdirSync(folder).map(file => ({
    file,
    content: parse(readFileSync(join(folder, file), 'utf8'), asWritten),
  }))
}

/** @param {object} content */
function toYaml(content) {
  return stringify(content, { ...asWritten, lineWidth: 0 })
}
