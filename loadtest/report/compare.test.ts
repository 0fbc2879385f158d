import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { resultOf } from '../test-support.ts'
import { CompareError, compareFolders, compareResults } from './compare.ts'

const figure = (value: number | undefined, better?: 'higher' | 'lower') => ({
  figure: { label: 'Figure', value, unit: 'units', better },
})

const row = (a: number | undefined, b: number | undefined, better?: 'higher' | 'lower') =>
  compareResults(resultOf({ figures: figure(a, better) }), resultOf({ figures: figure(b, better) })).rows[0]

test('each figure of both stands beside its ratio and the better one', () => {
  expect(row(150, 100, 'higher')).toEqual(['Figure (units)', 150, 100, '1.50 ×', 'A'])
  expect(row(150, 100, 'lower')).toEqual(['Figure (units)', 150, 100, '1.50 ×', 'B'])
})

test('within five percent two runs are the same', () => {
  expect(row(100, 96, 'higher').at(-1)).toBe('same')
})

test('a figure that only one has is no figure to compare', () => {
  expect(row(100, undefined, 'higher')).toEqual(['Figure (units)', 100, '—', '—', ''])
})

test('what else was not the same is said, first of all, and then neither is called better', () => {
  const a = resultOf({ settings: { clients: 1_000, start: 'keycast' } })
  const b = resultOf({ settings: { clients: 500, start: 'bare' } })

  expect(compareResults(a, b)).toMatchObject({
    title: expect.stringContaining('not under the same circumstances'),
    note: 'Not the same in both: clients 1000 and 500.',
  })
  expect(compareResults(a, b).columns).not.toContain('better')
  expect(compareResults(a, a)).toMatchObject({
    title: expect.not.stringContaining('not under the same'),
    note: 'Same settings, same machine.',
  })
  expect(compareResults(a, a).columns).toContain('better')
})

test('runs of different scenarios are not compared', () => {
  expect(() => compareResults(resultOf(), resultOf({ scenario: 'ticker' }))).toThrow(CompareError)
})

test('folders are read from disk, and the comparison written for a browser', () => {
  const folder = mkdtempSync(join(tmpdir(), 'keycast-compare-'))
  try {
    writeFileSync(join(folder, 'result.json'), JSON.stringify(resultOf()))
    const html = join(folder, 'comparison.html')

    expect(compareFolders(folder, join(folder, 'result.json'), { html })).toContain('Clients held (clients)')
    expect(readFileSync(html, 'utf8')).toContain('Clients held')
    expect(() => compareFolders(folder, join(folder, 'nowhere'))).toThrow('nowhere holds no result')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
