import { createCurveKeyPair, curveKeyProblem, curveKeyProblems, curvePairOf, decodeZ85, encodeZ85 } from './curve.ts'

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

test('the keys of one end are all given or none, and what is no key is named by its setting alone', () => {
  const { secretKey, publicKey } = createCurveKeyPair()
  expect(curveKeyProblems({ SECRET: [], CLIENTS: [] })).toEqual([])
  expect(curveKeyProblems({ SECRET: [secretKey], CLIENTS: [publicKey, publicKey] })).toEqual([])
  expect(curveKeyProblems({ SECRET: [secretKey], CLIENTS: [] })).toEqual([
    'CLIENTS is not set: SECRET and CLIENTS go together',
  ])
  expect(curveKeyProblems({ SECRET: ['hidden'], CLIENTS: [publicKey] })).toEqual([
    'SECRET: a CURVE key has 40 characters (Z85), not 6',
  ])
})
