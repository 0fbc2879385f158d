import { httpConnectionsWithin, openFilesMax, sessionsWithin } from './open-files.ts'

const limits = (soft: string) => `Limit                     Soft Limit           Hard Limit           Units
Max processes             63472                63472                processes
Max open files            ${soft.padEnd(20)} 1048576              files
`

test('the limit in force is the soft one', () => {
  expect(openFilesMax(() => limits('20000'))).toBe(20_000)
})

test('where there is no limit, or the system does not say, none is known', () => {
  expect(openFilesMax(() => limits('unlimited'))).toBeUndefined()
  const absent = () => {
    throw new Error('ENOENT')
  }
  expect(openFilesMax(absent)).toBeUndefined()
})

test('sessions leave room for other files, and a setting below that stands', () => {
  expect(sessionsWithin(25_000, 20_000)).toBe(19_500)
  expect(sessionsWithin(10_000, 20_000)).toBe(10_000)
  expect(sessionsWithin(25_000, undefined)).toBe(25_000)
  expect(sessionsWithin(25_000, 256)).toBe(1)
})

test('HTTP connections leave files for all else', () => {
  expect(httpConnectionsWithin(18_000)).toBe(5_000)
  expect(httpConnectionsWithin(524, 1_024)).toBe(400)
  expect(httpConnectionsWithin(1, 20)).toBe(100)
})
