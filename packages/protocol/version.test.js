import { versionOf } from './version.js'

test('a version is 22 characters made from the content alone', () => {
  expect(versionOf(Buffer.from('keycast'))).toMatch(/^[A-Za-z0-9_-]{22}$/)
  expect(versionOf(Buffer.from('keycast'))).toBe(versionOf(new TextEncoder().encode('keycast')))
  expect(versionOf(Buffer.from('keycast'))).not.toBe(versionOf(Buffer.from('keycasT')))
})
