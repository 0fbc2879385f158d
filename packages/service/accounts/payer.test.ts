import { accountsOf, createPayers, isPayer } from './payer.ts'

const named = createPayers({ secret: 'secret', hasUsers: () => true })
const kindsOf = (payer: string | undefined) =>
  payer &&
  accountsOf(payer)
    .map(([kind]) => kind)
    .join('')

test('a user pays at an address, and that in its network', () => {
  const payer = named({ user: 'ann', address: '2001:db8:1:2::/64' })
  expect(kindsOf(payer)).toBe('nau')
  expect(payer).toMatch(/^n[\w-]{11}\.a[\w-]{11}\.u[\w-]{11}$/)
  expect(kindsOf(named({ user: 'ann', address: '192.0.2.1' }))).toBe('au')
  expect(kindsOf(named({ user: 'ann', address: undefined }))).toBe('u')
})

test('guests pay together, apart from users; without users nobody is a guest', () => {
  expect(kindsOf(named({ user: undefined, address: '2001:db8:1:2::/64' }))).toBe('gNA')
  expect(named({ user: undefined, address: undefined })).toBe('g.A')
  const open = createPayers({ secret: 'secret', hasUsers: () => false })
  expect(kindsOf(open({ user: undefined, address: '192.0.2.1' }))).toBe('a')
  expect(open({ user: undefined, address: undefined })).toBeUndefined()
})

test('all /64 of a /48 have one network, and every gateway with the same secret gives the same names', () => {
  const [first, second] = ['2001:db8:1:2::/64', '2001:db8:1:ff::/64'].map(address => named({ user: 'ann', address }))
  expect(accountsOf(first as string)[0]).toBe(accountsOf(second as string)[0])
  expect(accountsOf(first as string)[1]).not.toBe(accountsOf(second as string)[1])
  const use = { user: 'ann', address: '192.0.2.1' }
  expect(createPayers({ secret: 'secret', hasUsers: () => true })(use)).toBe(named(use))
  expect(createPayers({ secret: 'other', hasUsers: () => true })(use)).not.toBe(named(use))
})

test('what no gateway writes is no payer', () => {
  expect(isPayer(named({ user: 'ann', address: '2001:db8:1:2::/64' }))).toBe(true)
  for (const wrong of [undefined, 7, '', '.', 'a.', '1', 'a b', `a${'x'.repeat(64)}`])
    expect(isPayer(wrong)).toBe(false)
})
