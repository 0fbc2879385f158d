import { createCurveKeyPair, curveKeyProblem, curvePairOf, decodeZ85, encodeZ85 } from './curve.js'

test('Z85 agrees with the test case of its specification', () => {
  const bytes = Buffer.from([0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b])
  expect(encodeZ85(bytes)).toBe('HelloWorld')
  expect(decodeZ85('HelloWorld')).toEqual(bytes)
})

test('the public key computed from a secret is the one ZeroMQ made with it', () => {
  for (let i = 0; i < 20; i++) {
    const pair = createCurveKeyPair()
    expect(curvePairOf(pair.secretKey)).toEqual(pair)
  }
})

test('what is no key is refused without being repeated', () => {
  expect(curveKeyProblem('short')).toContain('40 characters')
  expect(curveKeyProblem(`${'0'.repeat(39)}"`)).toContain('Z85')
  expect(() => curvePairOf('hunter2')).toThrow(/^(?!.*hunter2)/)
})
