import { mergeByRole } from './target.ts'

test('a pid and metrics of one role are one process', () => {
  expect(
    mergeByRole([{ role: 'gateway', value: 17 }], [{ role: 'gateway', value: 'http://127.0.0.1:8081/metrics' }]),
  ).toEqual([{ name: 'gateway', role: 'gateway', pid: 17, metricsUrl: 'http://127.0.0.1:8081/metrics' }])
})

test('a role named twice has two processes', () => {
  const pids = [
    { role: 'gateway', value: 17 },
    { role: 'proxy', value: 20 },
    { role: 'gateway', value: 18 },
  ]

  expect(mergeByRole(pids, []).map(({ name, pid }) => [name, pid])).toEqual([
    ['gateway 1', 17],
    ['gateway 2', 18],
    ['proxy', 20],
  ])
})
