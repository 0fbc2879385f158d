import { clientUrl, hostOf, valkeyUrlProblem } from './url.ts'

test.each([
  'valkey://127.0.0.1:6379',
  'valkey://valkey',
  'valkeys://journal:s3cret@valkey.example.org:6380/2',
  'redis://:s3cret@10.0.0.1',
])('%s is an address', url => {
  expect(valkeyUrlProblem(url)).toBeUndefined()
  expect(clientUrl(url)).toMatch(/^rediss?:\/\//)
  expect(hostOf(url)).not.toContain('s3cret')
})

test.each(['', 'valkey', '127.0.0.1:6379', 'http://s3cret@valkey', 'valkey:///0', 'valkey://valkey/database'])(
  '%j is none, and is not repeated',
  url => {
    expect(valkeyUrlProblem(url)).toMatch(/^must be like valkey:/)
    expect(valkeyUrlProblem(url)).not.toContain('s3cret')
  },
)
