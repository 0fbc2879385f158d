import type { AddressInfo } from 'node:net'
import { realWorld } from '@keycast/service'
import { answering, cleanUp, json, lease, setup } from '../pull.fixture.ts'
import { createPuller } from '../pull.ts'
import { createConnections } from './connections.ts'
import { createLookups, type Lookup } from './lookups.ts'

afterEach(cleanUp)

type Asked = Parameters<Lookup>

/** Lookups that the test answers. */
function setupLookups() {
  const asked: Asked[] = []
  const lookup = createLookups((...args) => void asked.push(args))
  return { asked, lookup }
}

test('all who ask for a name while it is looked up get the answer of that lookup', () => {
  const { asked, lookup } = setupLookups()
  const answers: unknown[] = []

  for (let i = 0; i < 3; i++) lookup('a.test', { all: true }, (_, addresses) => answers.push(addresses))
  expect(asked).toHaveLength(1)
  expect(asked[0].slice(0, 2)).toEqual(['a.test', { all: true }])
  const [[, , found]] = asked
  found(null, [{ address: '192.0.2.1', family: 4 }])

  expect(answers).toEqual(Array(3).fill([{ address: '192.0.2.1', family: 4 }]))
})

test('a name is looked up again once its lookup has ended, well or not', () => {
  const { asked, lookup } = setupLookups()
  const errors: unknown[] = []

  for (const error of [new Error('EAI_AGAIN'), null]) {
    lookup('a.test', {}, each => errors.push(each))
    asked.at(-1)?.[2](error, '')
  }

  expect(asked).toHaveLength(2)
  expect(errors).toEqual([new Error('EAI_AGAIN'), null])
})

test('names wait for no other name', () => {
  const { asked, lookup } = setupLookups()

  lookup('a.test', {}, () => {})
  lookup('b.test', {}, () => {})

  expect(asked.map(([name]) => name)).toEqual(['a.test', 'b.test'])
})

test('pulls from a name whose servers are silent leave one lookup behind, however many meet their deadline', async () => {
  const { asked, lookup } = setupLookups()
  const connections = createConnections({ ...realWorld, lookup })
  const puller = createPuller({ ...realWorld, connections })
  const { server } = await setup(answering(200, json, '1'))
  const { port } = server.address() as AddressInfo
  const pull = (timeoutMs: number) => puller.pull(lease({ url: `http://silent.test:${port}/`, timeoutMs }))
  try {
    for (let i = 0; i < 5; i++) expect((await pull(10)).result).toMatchObject({ code: 'backend_timeout' })
    expect(asked).toHaveLength(1)

    const pulled = pull(5_000)
    asked[0][2](null, [{ address: '127.0.0.1', family: 4 }])
    expect((await pulled).result.kind).toBe('value')
  } finally {
    connections.close()
  }
})
