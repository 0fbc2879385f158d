import { PassThrough } from 'node:stream'
import { createAdmit } from './admit.ts'
import { createPendingLimit } from './pending-limit.ts'

test('requests whose key the backend has still to admit are counted before they wait: no more are asked about', async () => {
  const asked: string[] = []
  const decided: ((admitted: object) => void)[] = []
  const gate = {
    enter(_: unknown, act: string, key: string) {
      asked.push(`${act} ${key}`)
      return new Promise<any>(resolve => decided.push(resolve))
    },
  }
  const admit = createAdmit({
    authenticate: async () => ({ hasToken: false, leave() {} }) as any,
    gate,
    pending: createPendingLimit(2),
  })
  const sent: any[] = []
  const reply: any = {
    raw: new PassThrough(),
    code: () => reply,
    header: () => reply,
    hasHeader: () => false,
    send: (body: any) => sent.push(body),
  }
  const get = (key: string) => admit({ params: { '*': key }, raw: {} } as any, reply, 'get')

  const waiting = [get('doc:1'), get('doc:2')]
  expect(await get('doc:3')).toBeUndefined()
  expect(sent).toMatchObject([{ code: 'too_many_waiting', retryAfterMs: 1_000 }])
  expect(asked).toEqual(['get doc:1', 'get doc:2'])

  for (const admitted of decided) admitted({ key: 'doc' })
  expect(await Promise.all(waiting)).toEqual([
    { key: 'doc', hasToken: false },
    { key: 'doc', hasToken: false },
  ])
  void get('doc:4')
  await new Promise(resolve => setImmediate(resolve))
  expect(asked).toContain('get doc:4')
})

test.each(['answered', 'cut off'])(
  'the token of a request is let go of once that is %s, also amid its admission',
  async how => {
    const raw = new PassThrough()
    let left = 0
    const admit = createAdmit({
      authenticate: async () => ({ hasToken: true, leave: () => left++ }) as any,
      gate: { enter: () => new Promise(() => {}) },
      pending: createPendingLimit(1),
    })
    void admit({ params: { '*': 'doc:1' }, raw: {} } as any, { raw, header() {}, getHeader() {} } as any, 'get')
    await new Promise(resolve => setImmediate(resolve))
    expect(left).toBe(0)
    if (how === 'answered') raw.end().resume()
    else raw.destroy()
    await new Promise(resolve => raw.once('close', resolve))
    await new Promise(resolve => setImmediate(resolve))
    expect(left).toBe(1)
  },
)
