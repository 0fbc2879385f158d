import { createNodeSource, endpointsOf, readNodes } from './nodes.js'

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

test('a host with many addresses is many nodes, looked up again, and a failing look-up changes nothing', async () => {
  /** @type {string[][]} */
  const found = []
  let look = async () => {}
  /** @type {(string[] | Error)[]} */
  const answers = [['10.0.0.1', '10.0.0.2'], new Error('EAI_AGAIN'), ['10.0.0.2']]
  const source = createNodeSource({
    nodes: readNodes('fetcher'),
    every: (_, tick) => {
      look = async () => tick()
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
  await look()
  await look()

  expect(found).toEqual([
    ['10.0.0.1:7001:7002', '10.0.0.2:7001:7002'],
    ['10.0.0.1:7001:7002', '10.0.0.2:7001:7002'],
    ['10.0.0.2:7001:7002'],
  ])
})
