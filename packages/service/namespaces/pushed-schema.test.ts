import { problemsOf, read, useFolder } from './read-yaml.fixture.ts'

useFolder()

describe('values that are handed over', () => {
  test('have few fields, and are no namespace of fetched ones', () => {
    const { fetched, pushed, journal } = read('namespaces: { price: { source: pushed, maxBytes: 64KiB } }')
    expect([fetched.names, pushed.names, journal.names]).toEqual([[], ['price'], []])
    expect(pushed.get('price')).toEqual({
      name: 'price',
      source: 'pushed',
      maxAgeMs: 1_000,
      refreshMs: 0,
      timeoutMs: 2_000,
      bytesMax: 64 * 1_024,
      ids: { min: 1, max: 1 },
    })
  })

  test('what is for fetching is refused by name, and by why', () => {
    const fields = 'url: "http://h/{id}", refresh: 1s, changes: { sse: "http://h/c" }, history: {}, maxBytes: 1MiB'
    expect(problemsOf(() => read(`namespaces: { price: { source: pushed, ${fields} } }`))).toEqual([
      expect.stringMatching(/namespaces.price.maxBytes: must be .*512/),
      expect.stringMatching(/namespaces.price.url: is for source: http: a value that is handed over is never fetched/),
      expect.stringMatching(/namespaces.price.refresh: is for source: http/),
      expect.stringMatching(/namespaces.price.changes: is for source: http/),
      expect.stringMatching(/namespaces.price.history: unknown field/),
    ])
  })

  test('may leave to the backend who reads', () => {
    const { pushed } = read(
      'namespaces: { price: { source: pushed, authorize: { url: "http://h/{id}", timeout: 1s } } }',
    )
    expect(pushed.get('price')).toMatchObject({ timeoutMs: 1_000, authorize: { method: 'HEAD', origin: 'http://h' } })
  })
})
