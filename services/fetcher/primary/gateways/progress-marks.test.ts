import { createMarks, MARK } from './progress-marks.ts'

function setup() {
  let at = 1_000
  const told: string[] = []
  const node: { lags: Record<string, number> | undefined } = { lags: { doc: 5 } }
  const marks = createMarks({
    tell: (link, key) => told.push(`${link} ${key}`),
    lagsMs: () => node.lags,
    now: () => at,
  })
  return { marks, told, node, pass: (ms: number) => (at += ms) }
}

test('what the node has reached is said once what was due before has left', () => {
  const { marks, told, pass } = setup()

  expect(marks.headsFor('a')).toBeUndefined()
  expect(told).toEqual([`a ${MARK}`])
  marks.pass('a')
  pass(1_000)

  expect(marks.headsFor('a')).toEqual({ lagsMs: { doc: 1_005 } })
})

test('a link that is not sent what it is due hears nothing newer, however long that takes', () => {
  const { marks, told, node, pass } = setup()
  marks.headsFor('a')
  marks.pass('a')
  marks.headsFor('a')
  node.lags = { doc: 0 }

  pass(10_000)

  expect(marks.headsFor('a')).toEqual({ lagsMs: { doc: 10_005 } })
  expect(told).toHaveLength(2)
})

test('links are told apart, and a lost one is forgotten', () => {
  const { marks } = setup()
  marks.headsFor('a')
  marks.headsFor('b')
  marks.pass('a')

  expect(marks.headsFor('b')).toBeUndefined()
  marks.drop('a')
  expect(marks.headsFor('a')).toBeUndefined()
})

test('a node that confirms nothing by beats puts no marks', () => {
  const { marks, told, node } = setup()
  node.lags = undefined

  expect(marks.headsFor('a')).toBeUndefined()
  expect(told).toEqual([])
})
