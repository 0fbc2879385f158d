import { resultOf } from '../test-support.ts'
import { formatNumber } from './format.ts'
import { buildReport } from './report.ts'

test('a report loads nothing: it can be mailed, and opened without a network', () => {
  // Without what is inside the scripts: the library builds markup of its own.
  const html = buildReport(resultOf()).replace(/(<script[^>]*>)[\s\S]*?<\/script>/g, '$1')

  expect(html.match(/<script/g)).toHaveLength(3)
  expect(html).not.toMatch(/<(script|img|link|iframe)[^>]*\s(src|href)="(?!data:)/)
  expect(html).not.toMatch(/@import|url\((?!["']?data:)/)
})

test('text of a run cannot become markup, in the page or in its data', () => {
  const hostile = '</script><script>alert(1)</script>'
  const html = buildReport(
    resultOf({
      label: hostile,
      headline: hostile,
      notes: [hostile],
      reasons: { [hostile]: 1 },
      settings: { key: hostile },
    }),
  )

  expect(html).not.toContain(hostile)
  expect(html).not.toContain('<script>alert')
})

test('the headline, every figure and every count stand in it', () => {
  const html = buildReport(resultOf({ counts: { requested: 4_711 } }))

  for (const text of ['1,000 clients held', 'Clients held', '4,711', 'requested 1 = answered 1'])
    expect(html).toContain(text)
})

test('it says loudly when the generator was the limit, or a count is wrong', () => {
  const html = buildReport(
    resultOf({
      limit: { limiter: 'generator', text: 'THE GENERATOR WAS THE LIMIT', othersRatio: 0 },
      sums: [{ text: 'requested 2 = answered 1', holds: false }],
      addsUp: false,
    }),
  )

  expect(html).toContain('<p class="bad">THE GENERATOR WAS THE LIMIT</p>')
  expect(html).toContain('<p class="bad">Does not add up: requested 2 = answered 1</p>')
})

test.each([
  [undefined, '—'],
  [0, '0'],
  [7, '7'],
  [3.456, '3.46'],
  [42.55, '42.6'],
  [1_543.7, '1,544'],
])('%s is shown as %s', (value, text) => {
  expect(formatNumber(value)).toBe(text)
})
