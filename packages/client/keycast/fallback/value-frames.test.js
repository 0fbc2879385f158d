import { frameOf } from './value-frames.js'

/** @param {string} text */
const linesOf = text =>
  Buffer.from(/** @type {ArrayBuffer} */ (frameOf(text)))
    .toString('latin1')
    .split('\n')

test('JSON keeps its digits, text and bytes are decoded', () => {
  const head = '{"type":"value","id":1,"key":"a:1","version":"v"'
  const line = { type: 'value', id: 1, key: 'a:1', version: 'v' }
  const [json, data] = linesOf(`${head},"data":{"n":1.50,"text":"x"}}`)
  expect([JSON.parse(json), data]).toEqual([{ ...line, contentType: 'application/json' }, '{"n":1.50,"text":"x"}'])
  const type = 'text/plain; x=\\",\\"data\\":'
  const [plain, text] = linesOf(`${head},"contentType":"${type}","text":"a\\"b"}`)
  expect([JSON.parse(plain).contentType, text]).toEqual(['text/plain; x=","data":', 'a"b'])
  const [, bytes] = linesOf(`${head},"contentType":"image/png","base64":"/wA="}`)
  expect(bytes).toBe('\xff\0')
})

test('all else is passed on as it is', () => {
  for (const text of ['{"type":"message","data":1}', '{"type":"value"}', 'x']) expect(frameOf(text)).toBe(text)
})
