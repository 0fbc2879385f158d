// Questions whose token expires, or is revoked, while the backend is asked with it.
import { admitted, createDecidingGateway, failed, KEEP_MS, KEY, nowMs, refused } from './test-backend.ts'

test('a token that expires on its way to the backend ends no subscription: it goes on with the next token', async () => {
  const { backbone, client, clientWith, decide, pass, token } = createDecidingGateway()
  const ann = await client('ann', 60)
  await pass(59_500)
  await ann.received()
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await pass(250)
  // The backend's clock is a little ahead.
  await decide(refused)
  expect(await ann.received()).toMatchObject([
    { type: 'subscribed' },
    { type: 'error', code: 'token_expired', key: KEY, subscribed: true, retryAfterMs: 1_000 },
  ])
  const renewed = await clientWith(await token('ann', 300))
  await pass(1_250)
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${renewed.token}` } }])
  await decide(admitted)
  expect(backbone.calls).toEqual([`watch ${KEY}`])
})

test('a token that expires while the answer is on its way back was refused for the key', async () => {
  const { client, decide, pass } = createDecidingGateway()
  const ann = await client('ann', 60)
  await pass(59_500)
  await ann.received()
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide({ ...refused, ageMs: 8_000 })
  expect((await ann.received()).at(-1)).toMatchObject({ code: 'forbidden', key: KEY, subscribed: false })
})

test('a key that a valid token was refused for stays so where another token of the user expires on the way', async () => {
  const { client, decide, pass } = createDecidingGateway()
  const [long, short] = [await client('ann', 600), await client('ann', 60)]
  await pass(57_000)
  short.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(refused)
  await decide(refused)
  expect((await short.received()).at(-1)).toMatchObject({ code: 'forbidden', subscribed: false })
  expect(await long.received()).toEqual([])
})

test('an answer to a question with a token that was revoked meanwhile is not taken: the next token is asked with', async () => {
  const { backbone, client, decide, gateway, pass } = createDecidingGateway()
  const stolen = await client('ann', 300)
  stolen.send({ type: 'get', id: 1, key: KEY })
  gateway.revoke({ sub: 'ann', before: nowMs / 1_000 + 1 })
  await pass(2_000)
  const ann = await client('ann', 60)
  ann.send({ type: 'get', id: 1, key: KEY })
  await decide(admitted)
  expect(backbone.calls).toEqual([])
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${ann.token}` } }])
  await decide(refused)
  expect(await ann.received()).toMatchObject([{ code: 'forbidden', id: 1 }])
})

test('after a revocation nodes are told how old an answer may be, until none they keep is older', async () => {
  const { backbone, client, decide, gateway, pass } = createDecidingGateway()
  const stolen = await client('ann', 300)
  stolen.send({ type: 'get', id: 1, key: KEY })
  await decide(admitted)
  expect(backbone.calls).toEqual([`get ${KEY}`])
  gateway.revoke({ sub: 'ann', before: nowMs / 1_000 + 1 })
  const bob = await client('bob')
  bob.send({ type: 'get', id: 1, key: KEY })
  expect(backbone.questions[0].maxAgeMs).toBeUndefined()
  await decide(refused)
  // Meanwhile nothing is left here of her sessions and tokens.
  for (let seconds = 0; seconds < 15; seconds++) await pass(1_000)
  const ann = await client('ann')
  ann.send({ type: 'get', id: 1, key: KEY })
  // Less a second, in which other gateways may have asked with the revoked token.
  expect(backbone.questions).toMatchObject([{ maxAgeMs: 14_000 }])
  await decide(failed)
  expect(await ann.received()).toMatchObject([{ code: 'backend_error' }])
  await pass(2 * KEEP_MS)
  ann.send({ type: 'get', id: 2, key: KEY })
  expect(backbone.questions[0].maxAgeMs).toBeUndefined()
})

test('a gateway that the user was never at says so, too; one that holds another token of the user asks anew', async () => {
  const { backbone, client, decide, gateway, token, clientWith, pass } = createDecidingGateway()
  gateway.revoke({ sub: 'ann', before: nowMs / 1_000 - 60 })
  const ann = await client('ann')
  ann.send({ type: 'get', id: 1, key: KEY })
  expect(backbone.questions).toMatchObject([{ maxAgeMs: 0 }])
  await decide(admitted)
  await pass(2 * KEEP_MS + 2_000)
  const tab = await clientWith(await token('ann', 600))
  tab.send({ type: 'get', id: 1, key: KEY })
  expect(backbone.questions[0].maxAgeMs).toBeUndefined()
})

test('after a revocation a backend that fails lets no next token in by what it said of the one before', async () => {
  const { backbone, client, decide, gateway, pass } = createDecidingGateway()
  const stolen = await client('ann', 300)
  stolen.send({ type: 'subscribe', id: 1, keys: [KEY] })
  await decide(admitted)
  await pass(KEEP_MS + 250)
  gateway.revoke({ sub: 'ann', before: nowMs / 1_000 + 1 })
  const ann = await client('ann', 60)
  ann.send({ type: 'get', id: 1, key: KEY })
  await decide(admitted)
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${ann.token}` } }])
  await decide(failed)
  expect(await ann.received()).toMatchObject([{ code: 'backend_error', id: 1 }])
})
