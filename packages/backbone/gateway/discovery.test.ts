import { createNodeSource, endpointsOf, readNodes } from './discovery.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

test('nodes are read with and without ports', () => {
  expect(readNodes('fetcher, 10.0.0.1:17001:17002')).toEqual([
    { host: 'fetcher', requestsPort: 7001, answersPort: 7002 },
    { host: '10.0.0.1', requestsPort: 17001, answersPort: 17002 },
  ])
})

test.each(['', 'a,,b', 'host:7001', 'host:0:1', 'host:7001:70000', 'tcp://host', 'ho st'])(
  '%j is refused by name',
  text => {
    expect(() => readNodes(text)).toThrow(/is no fetcher node: write/)
  },
)

test("a node's name is its address, and says where its sockets are", () => {
  expect(endpointsOf('10.0.0.1:7001:7002')).toEqual({ requests: 'tcp://10.0.0.1:7001', answers: 'tcp://10.0.0.1:7002' })
})

/** @param answers of the name server, in turn */
async function startSource(answers: (string[] | Error)[]) {
  const found: string[][] = []
  let tick = () => {}
  const source = createNodeSource({
    nodes: readNodes('fetcher'),
    every: (_, run) => {
      tick = run
      return () => {}
    },
    log,
    resolve: async () => {
      const answer = answers.shift()
      if (!Array.isArray(answer)) throw answer
      return answer
    },
  })
  await source.start(names => found.push(names))
  while (answers.length > 0) {
    tick()
    await new Promise(setImmediate)
  }
  return found
}

test('a host with many addresses is many nodes', async () => {
  expect(await startSource([['10.0.0.1', '10.0.0.2']])).toEqual([['10.0.0.1:7001:7002', '10.0.0.2:7001:7002']])
})

test('it is looked up again, and only a change is told', async () => {
  const found = await startSource([['10.0.0.1'], ['10.0.0.1'], ['10.0.0.2', '10.0.0.1'], ['10.0.0.1', '10.0.0.2']])
  expect(found).toEqual([['10.0.0.1:7001:7002'], ['10.0.0.1:7001:7002', '10.0.0.2:7001:7002']])
})

test('an address is given up when three look-ups in a row lack it, of which none failed', async () => {
  const lack = ['10.0.0.2']
  const both = ['10.0.0.1', '10.0.0.2']
  const twice = await startSource([both, lack, lack, new Error('EAI_AGAIN'), both, lack, lack])
  expect(twice).toHaveLength(1)

  const thrice = await startSource([both, lack, new Error('EAI_AGAIN'), lack, lack])
  expect(thrice.at(-1)).toEqual(['10.0.0.2:7001:7002'])
})
