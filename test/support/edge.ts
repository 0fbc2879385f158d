// nginx as docs/deploy/cdn.md has it, between viewers who wait over HTTP and gateways.
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { edgeConfig } from '../../loadtest/system/edge.ts'
import { newFolder } from './cleanup.ts'
import { freePorts } from './free-ports.ts'
import { answersAt, startTool } from './tool.ts'

/** @returns its origin */
export async function startEdge(gateways: { port: number }[]): Promise<string> {
  const folder = newFolder()
  // The workers of an nginx that root started are another user.
  chmodSync(folder, 0o755)
  const [port] = await freePorts(1)
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, edgeConfig({ folder, port, gateways: gateways.map(({ port }) => port) }))
  const origin = `http://127.0.0.1:${port}`
  // A question without a version, which the gateway refuses.
  await startTool(
    'nginx',
    ['-c', file, '-e', join(folder, 'error.log')],
    () => answersAt(`${origin}/v1/wait/x:1`, 400),
    {
      env: { PATH: `${process.env.PATH}:/usr/sbin` },
    },
  )
  return origin
}
