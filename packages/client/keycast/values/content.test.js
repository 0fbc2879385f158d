import { createContent } from './content.js'

/** @param {string} contentType @param {Uint8Array} bytes */
const read = (contentType, bytes) => createContent({ version: 'v', contentType, bytes }).read()

test.each([
  ['application/json'],
  ['application/json;profile=x'],
  ['text/json'],
  ['application/geo+json'],
  ['Application/JSON'],
])('%s is parsed', type => {
  expect(read(type, Buffer.from('{"n":[1]}'))).toEqual({ n: [1] })
})

test.each([
  ['text/plain;charset=utf-8'],
  ['text/html; charset=UTF-8'],
  ['application/xml;charset=utf-8'],
  ['image/svg+xml;charset=utf-8'],
  ['application/javascript;charset=utf-8'],
])('%s is a string', type => {
  expect(read(type, Buffer.from('héllo'))).toBe('héllo')
})

test.each([
  ['application/octet-stream'],
  ['image/png'],
  ['application/jsonish'],
  ['text/plain;charset=windows-1252'],
  ['text/plain;charset=utf-8'],
])('bytes that are no UTF-8 stay bytes as %s', type => {
  expect(read(type, Buffer.from([0xff, 0xfe]))).toEqual(Uint8Array.from([0xff, 0xfe]))
})

test('it is read once, when somebody looks', () => {
  const content = createContent({ version: 'v', contentType: 'application/json', bytes: Buffer.from('{}') })
  expect(content.read()).toBe(content.read())
  const broken = createContent({ version: 'v', contentType: 'application/json', bytes: Buffer.from('{') })
  expect(() => broken.read()).toThrow(SyntaxError)
})

test('bytes given away are a copy: the next delta is applied to those that came', () => {
  const bytes = Buffer.from([1, 2])
  const value = /** @type {Uint8Array} */ (read('image/png', bytes))
  value[0] = 9
  expect(bytes[0]).toBe(1)
})
