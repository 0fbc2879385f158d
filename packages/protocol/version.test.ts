import { versionOf } from './version.js'

test('a version is 22 characters made from the content alone, and stays the same from release to release', () => {
  expect(versionOf(Buffer.from('keycast'))).toMatch(/^[A-Za-z0-9_-]{22}$/)
  expect(versionOf(Buffer.from('keycast'))).toBe(versionOf(new TextEncoder().encode('keycast')))
  expect(versionOf(Buffer.from('keycast'))).not.toBe(versionOf(Buffer.from('keycasT')))
  expect(versionOf(Buffer.from('{}'))).toBe('RBNvo1WzZ4oRRq0W9-hkng')
})

test('the type of a content goes into its version, unless it is application/json', () => {
  const content = Buffer.from('{}')
  expect(versionOf(content, 'application/json')).toBe(versionOf(content))
  expect(versionOf(content, 'text/plain;charset=utf-8')).not.toBe(versionOf(content))
  expect(versionOf(content, 'text/plain;charset=utf-8')).not.toBe(versionOf(content, 'text/html;charset=utf-8'))
})
