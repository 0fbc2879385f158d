import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { filesOf } from '../scripts/docs/markdown.ts'

const script = fileURLToPath(new URL('keycast.js', import.meta.url))

function run(args: string[], nodeArguments: string[] = []) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...nodeArguments, script, ...args], {
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

/** What --help lists, apart from the client library's verbs. */
const listed = [
  ...run(['--help'])
    .stdout.split('As a client')[0]
    .matchAll(/^ {2}([a-z-]+) /gm),
].map(([, verb]) => verb)

test('--help lists every verb that has a file', () => {
  const files = filesOf('cli').flatMap(file => /^cli\/([a-z-]+)\.ts$/.exec(file)?.[1] ?? [])
  expect(listed.sort()).toEqual(files.filter(name => name !== 'keycast').sort())
})

test.each(listed)('%s --help says how it is used', verb => {
  expect(run([verb, '--help'])).toEqual({
    status: 0,
    stdout: expect.stringMatching(new RegExp(`^Usage: keycast ${verb}\\b`)),
    stderr: '',
  })
})

test.each(['watch', 'get', 'publish', 'history', 'members'])('%s is left to the client library', verb => {
  expect(run([verb])).toEqual({
    status: 2,
    stdout: '',
    stderr: `keycast: say which key to ${verb}, such as conversation:1\n`,
  })
})

test('a verb that is not there, an option that is not there and no verb are each named, and end with 2', () => {
  const complaint = (stderr: string) => ({ status: 2, stdout: '', stderr })
  expect(run(['tokn'])).toEqual(complaint('keycast: there is no verb "tokn"; --help lists them\n'))
  expect(run([])).toEqual(complaint('keycast: give a verb; --help lists them\n'))
  expect(run(['token', '--colour'])).toEqual(
    complaint("keycast token: Unknown option '--colour'\nkeycast token: --help lists the options\n"),
  )
})

test('on a Node that is too old the one that npm brought does the work, and its exit code is the end', () => {
  const folder = mkdtempSync(join(tmpdir(), 'keycast-old-'))
  try {
    const old = join(folder, 'old.cjs')
    writeFileSync(old, `Object.defineProperty(process.versions, 'node', { value: '20.18.1' })`)
    expect(run(['token'], ['--require', old])).toEqual(run(['token']))
    expect(run(['token', '--help'], ['--require', old])).toEqual(run(['token', '--help']))
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('npm links it under its name: before the command of the client library, whose folder sorts behind this one', () => {
  const { name, bin } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
  const client = JSON.parse(readFileSync(new URL('../packages/client/package.json', import.meta.url), 'utf8'))
  expect(Object.keys(bin)).toEqual(Object.keys(client.bin))
  expect([client.name, name].sort()[0]).toBe(name)
})
