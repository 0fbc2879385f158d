import { limitKeyOf, readPeer, trustedProxiesProblem } from './client-address.ts'

const addressOf = ({
  from,
  forwarded,
  trusted = '10.0.0.0/8, fd00::/8',
}: {
  from?: string
  forwarded?: string
  trusted?: string
}) => readPeer(trusted)({ headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress: from } }).address

test.each([
  ['the connection has it', { from: '192.0.2.1' }, '192.0.2.1'],
  ['a stranger says another', { from: '192.0.2.1', forwarded: '198.51.100.9' }, '192.0.2.1'],
  ['nobody is trusted', { from: '10.0.0.1', forwarded: '198.51.100.9', trusted: '' }, '10.0.0.1'],
  ['a trusted proxy names it', { from: '10.0.0.1', forwarded: '198.51.100.9' }, '198.51.100.9'],
  ['two trusted proxies stand between', { from: '10.0.0.1', forwarded: '198.51.100.9, 10.0.0.2' }, '198.51.100.9'],
  [
    'the client itself wrote what stands before',
    { from: '10.0.0.1', forwarded: '1.1.1.1, 198.51.100.9' },
    '198.51.100.9',
  ],
  ['only proxies are named', { from: '10.0.0.1', forwarded: '10.0.0.3,10.0.0.2' }, '10.0.0.3'],
  ['the proxy names none', { from: '10.0.0.1' }, '10.0.0.1'],
  ['the proxy names what is no address', { from: '10.0.0.1', forwarded: '198.51.100.9, unknown' }, '10.0.0.1'],
  ['the proxy names nothing at the end', { from: '10.0.0.1', forwarded: '198.51.100.9, ' }, '10.0.0.1'],
  ['the proxy is seen over IPv6', { from: '::ffff:10.0.0.1', forwarded: '198.51.100.9' }, '198.51.100.9'],
  [
    'the proxy is seen over IPv6, in hexadecimal',
    { from: '::FFFF:a00:1', forwarded: '::ffff:c633:6409' },
    '198.51.100.9',
  ],
  ['all groups are written', { from: '10.0.0.1', forwarded: '0:0:0:0:0:ffff:198.51.100.9' }, '198.51.100.9'],
  ['a proxy is trusted as IPv6', { from: '10.0.0.1', forwarded: '192.0.2.9', trusted: '::ffff:a00:1' }, '192.0.2.9'],
  ['the proxy has an IPv6 address', { from: 'fd00::1', forwarded: '2001:DB8::1' }, '2001:db8:0:0::/64'],
  ['a port is written after it', { from: '10.0.0.1', forwarded: '198.51.100.9:4711' }, '198.51.100.9'],
  ['a port is written after an IPv6 one', { from: '10.0.0.1', forwarded: '[2001:db8::1]:4711' }, '2001:db8:0:0::/64'],
  ['it has a zone', { from: 'fe80::1%eth0' }, 'fe80:0:0:0::/64'],
  ['the connection is gone', {}, 'unknown'],
])('the address where %s', (_, request, expected) => {
  expect(addressOf(request)).toBe(expected)
})

test('a header as long as Node lets through is read from its end alone', () => {
  expect(addressOf({ from: '10.0.0.1', forwarded: `${'1.1.1.1,'.repeat(2_000)}198.51.100.9` })).toBe('198.51.100.9')
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8:01:0002:ffff::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['1::', '1:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4::/64'],
  ['unknown', 'unknown'],
])('limits of %s are counted under %s', (address, expected) => {
  expect(limitKeyOf(address)).toBe(expected)
})

test.each([
  ['192.0.2.1', '192.0.2.1', true],
  ['::ffff:192.0.2.1', '192.0.2.1', true],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64', true],
  ['10.0.0.1', '10.0.0.1', false],
  ['::ffff:10.0.0.1', '10.0.0.1', false],
  [undefined, 'unknown', true],
])('a connection from %s is counted under %s before anything was read: %s', (remoteAddress, address, isNamed) => {
  expect(readPeer('10.0.0.0/8')({ socket: { remoteAddress } })).toEqual({ address, isNamed })
})

test('a trusted proxy that names a client stands for that one', () => {
  const headers = { 'x-forwarded-for': '192.0.2.1' }
  expect(readPeer('10.0.0.0/8')({ socket: { remoteAddress: '10.0.0.1' }, headers })).toMatchObject({ isNamed: true })
})

test.each(['', ' ', '10.0.0.7', '10.0.0.0/8, 192.168.0.0/16', '::1,fd00::/8', '0.0.0.0/0'])(
  '%j names networks',
  text => {
    expect(trustedProxiesProblem(text)).toBeUndefined()
  },
)

test.each(['proxy', '10.0.0.0/33', '10.0.0.0/', '10.0.0/8', '10.0.0.0/8/8', 'fd00::/129', '10.0.0.1,', 'fe80::1%eth0'])(
  '%j is refused, and the offender named',
  text => {
    expect(trustedProxiesProblem(text)).toMatch(/^".*" is no address or network, as in/)
  },
)
