import { randomNumbers } from '../../test/support/random.js'
import { isJson } from './json-grammar.ts'

function parses(bytes: Buffer) {
  try {
    JSON.parse(bytes.toString('latin1'))
    return true
  } catch {
    return false
  }
}

const words = ['null', 'true', 'false', '0', '-0', '7', '-1.5E+3', '1e-9', '""', '"é\\u00e9\\n\\"\\\\"', '"a b"']
const damage = [...'[]{},:"\\u01-.eE+ \t\nt\0\x1f\x7fé\u2028', '00', 'true', '1.', 'nul', '\\u12', '"a":1']

test('whatever it is given, it takes what JSON.parse takes, and nothing else', () => {
  const random = randomNumbers(1)
  const below = (count: number) => Math.floor(random() * count)
  const one = <T>(of: T[]) => of[below(of.length)]
  const many = (make: () => string) => Array.from({ length: below(4) }, make).join(one([',', ' , ', ',\n']))
  const text = (depth: number): string => {
    const kind = depth > 4 ? 0 : below(4)
    if (kind < 2) return one(words)
    if (kind === 2) return `[${one(['', ' '])}${many(() => text(depth + 1))}]`
    return `{${many(() => `"${one(['a', 'b', ''])}"${one([':', ' : '])}${text(depth + 1)}`)}}`
  }
  let valid = 0
  const different = []
  for (let i = 0; i < 3_000; i++) {
    let made = text(0)
    for (let damaged = below(3); damaged > 0; damaged--) {
      const at = below(made.length + 1)
      made = made.slice(0, at) + one(['', ...damage]) + made.slice(at + below(3))
    }
    const bytes = Buffer.from(made)
    const isValid = parses(bytes)
    if (isValid) valid++
    if (isJson(bytes) !== isValid) different.push(made)
  }
  expect(different).toEqual([])
  expect(valid).toBeGreaterThan(500)
})

const MIB = 2 ** 20
const listOf = (make: (index: number) => string) => {
  const items = []
  for (let bytes = 0; bytes < 2 * MIB; bytes += items[items.length - 1].length + 1) items.push(make(items.length))
  return Buffer.from(`[${items}]`)
}

function cpuMs(work: () => void) {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

test.each([
  ['brackets', Buffer.from('['.repeat(MIB) + ']'.repeat(MIB))],
  ['maps whose members all have other names', listOf(index => `{"${index.toString(36)}":0}`)],
])('2 MiB of %s take about as long as others', (_, bytes) => {
  const usual = listOf(index => JSON.stringify({ id: index, text: 'as most content is', tags: ['a', 'b'] }))
  isJson(usual)
  const usualMs = cpuMs(() => expect(isJson(usual)).toBe(true))
  expect(cpuMs(() => expect(isJson(bytes)).toBe(true))).toBeLessThan(8 * usualMs + 20)
})
