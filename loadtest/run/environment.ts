// Describes the machine of a run, and the versions of everything that took part.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, cpus, release, totalmem } from 'node:os'

const require = createRequire(import.meta.url)

export type Environment = ReturnType<typeof describeEnvironment>

export function describeEnvironment({ tls }: { tls: boolean }) {
  return {
    machine: {
      cpu: cpus()[0]?.model.trim() ?? 'unknown',
      cores: availableParallelism(),
      memoryBytes: totalmem(),
      kernel: `${process.platform} ${release()}`,
    },
    versions: {
      node: process.versions.node,
      v8: process.versions.v8,
      keycast: commit(),
      ws: versionOf('ws'),
      autocannon: versionOf('autocannon'),
      ...(tls ? { nginx: nginxVersion() } : {}),
    },
  }
}

/** @param name of a package */
export function versionOf(name: string) {
  return JSON.parse(readFileSync(require.resolve(`${name}/package.json`), 'utf8')).version
}

function commit() {
  return firstLine('git', ['-C', import.meta.dirname, 'describe', '--always', '--dirty']) ?? 'unknown'
}

function nginxVersion() {
  // Often outside an ordinary user's PATH.
  for (const nginx of ['nginx', '/usr/sbin/nginx']) {
    const line = firstLine(nginx, ['-v'])
    if (line !== undefined) return line.replace('nginx version: nginx/', '')
  }
  return 'unknown'
}

function firstLine(command: string, args: string[]) {
  try {
    // nginx -v writes to stderr.
    const output = execFileSync('/bin/sh', ['-c', '"$0" "$@" 2>&1', command, ...args], { encoding: 'utf8' })
    return output.split('\n')[0] || undefined
  } catch {
    return undefined
  }
}
