import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'keycast-node-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs a program that imports node-24.js first, with a Node that says it is `version`. */
function runOn(version: string) {
  const old = join(folder, 'version.cjs')
  writeFileSync(old, `Object.defineProperty(process.versions, 'node', { value: '${version}' })`)
  const program = join(folder, 'program.mjs')
  writeFileSync(program, `import '${new URL('node-24.js', import.meta.url)}'\nconsole.log('ran')\n`)
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--require', old, 'program.mjs', '--sub', 'ann'], {
    cwd: folder,
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

test('a Node that cannot run TypeScript is told in a line what to do', () => {
  expect(runOn('20.18.1')).toEqual({
    status: 1,
    stdout: '',
    stderr: 'Keycast needs Node 24; this is 20.18.1. On Linux npm ci brings one: npx node program.mjs --sub ann\n',
  })
})

test.each(['24.0.0', '26.10.0'])('Node %s runs what follows', version => {
  expect(runOn(version)).toEqual({ status: 0, stdout: 'ran\n', stderr: '' })
})
