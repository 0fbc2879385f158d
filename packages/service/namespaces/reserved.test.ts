import { keyProblem, namespaceOf } from '@keycast/protocol'
import { callsRoom, revocationsRoom, withReserved } from './reserved.ts'
import { file } from './schema.ts'

const none = { get: () => undefined, names: [] }

test.each([revocationsRoom, callsRoom])('the journal has the namespace of %s, under a key that is one', room => {
  expect(keyProblem(room)).toBeUndefined()
  expect(withReserved(none).get(namespaceOf(room))).toMatchObject({ publish: 'server', members: 'none' })
})

test('the journal keeps a revocation from a day ahead for as long as a token may live, and its issuer be ahead', () => {
  const hourMs = 3_600_000
  const revocations = withReserved(none).get(namespaceOf(revocationsRoom))
  expect(revocations?.history.ageMs).toBeGreaterThanOrEqual((10 * 8_784 + 24) * hourMs + 30_000)
})

test('it is none of those that keycast.yaml names, and hides none of them', () => {
  const room = { name: 'room' } as any
  const namespaces = withReserved({ get: name => (name === 'room' ? room : undefined), names: ['room'] })
  expect(namespaces.names).toEqual(['room'])
  expect(namespaces.get('room')).toBe(room)
  expect(namespaces.get('other')).toBeUndefined()
})

test('keycast.yaml cannot take such a name', () => {
  const parsed = file.safeParse({ namespaces: { 'keycast-revocations': { source: 'journal' } } })
  expect(JSON.stringify(parsed.error?.issues)).toContain("names that begin with keycast- are Keycast's own")
})
