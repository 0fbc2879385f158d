// Calls the docker CLI for compose-check.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Longer than all stop graces of docker-compose.yml together, which follow one another. */
const TIMEOUT_MS = 120_000

export interface Container {
  id: string
  name: string
  service: string
}

/** The part of `docker inspect` that is used here. */
interface State {
  State: { Status: string; ExitCode: number; OOMKilled: boolean; Health?: { Status: string } }
  RestartCount: number
  HostConfig: {
    ReadonlyRootfs: boolean
    CapDrop: string[] | null
    CapAdd: string[] | null
    Privileged: boolean
    SecurityOpt: string[] | null
    LogConfig: { Type: string; Config: Record<string, string> }
  }
  NetworkSettings: { Ports: Record<string, { HostIp: string; HostPort: string }[] | null> }
}

/**
 * @returns the printed text
 * @throws {Error} carries docker's message
 */
export async function docker(...args: string[]): Promise<string> {
  try {
    const { stdout } = await run('docker', args, { cwd: root, timeout: TIMEOUT_MS, maxBuffer: 64 * 1_024 ** 2 })
    return stdout.trim()
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    throw new Error(`docker ${args.slice(0, 3).join(' ')}: ${stderr?.trim() || message}`)
  }
}

/** The project's containers, stopped ones included. */
export async function containers(): Promise<Container[]> {
  const ids = await docker('compose', 'ps', '--all', '--quiet')
  if (ids === '') return []
  const format = '{{.Id}} {{.Name}} {{index .Config.Labels "com.docker.compose.service"}}'
  const lines = await docker('inspect', '--format', format, ...ids.split('\n'))
  return lines.split('\n').map(line => {
    const [id, name, service] = line.split(' ')
    return { id, name: name.slice(1), service }
  })
}

export async function inspect({ id }: Container): Promise<State> {
  return JSON.parse(await docker('inspect', id))[0]
}

/** Runs a script in a container of ours, with that container's own Node. */
export function evaluate({ id }: Container, script: string) {
  return docker('exec', id, 'node', '--input-type=module', '--eval', script)
}

/** The answer of a URL inside a container. */
export function request(container: Container, url: string, method = 'GET') {
  return evaluate(
    container,
    `process.stdout.write(await (await fetch(${JSON.stringify(url)}, { method: ${JSON.stringify(method)} })).text())`,
  )
}

/**
 * Kills the program of a container from inside, as a crash would. Process 1 is Docker's init, which no signal from inside
 * ends, so its one child is killed.
 */
export async function crash({ id }: Container) {
  // The container ends and this command with it, so its exit code says nothing.
  await docker('exec', id, 'sh', '-c', 'read -r child rest < /proc/1/task/1/children; kill -9 "$child"').catch(() => {})
}

export async function isHealthy(container: Container) {
  const { State } = await inspect(container)
  return State.Status === 'running' && (State.Health?.Status ?? 'healthy') === 'healthy'
}
