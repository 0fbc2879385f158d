// Calls the docker CLI for compose-check.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Longer than all stop graces of docker-compose.yml together, which follow one another. */
const TIMEOUT_MS = 120_000

/**
 * @typedef {{ id: string, name: string, service: string }} Container
 *
 * @typedef {object} State the part of `docker inspect` that is used here
 * @property {{ Status: string, ExitCode: number, OOMKilled: boolean, Health?: { Status: string } }} State
 * @property {number} RestartCount
 * @property {{ ReadonlyRootfs: boolean, CapDrop: string[] | null, CapAdd: string[] | null, Privileged: boolean, SecurityOpt: string[] | null,
 *   LogConfig: { Type: string, Config: Record<string, string> } }} HostConfig
 * @property {{ Ports: Record<string, { HostIp: string, HostPort: string }[] | null> }} NetworkSettings
 */

/**
 * @param {...string} args
 * @returns {Promise<string>} the printed text
 * @throws {Error} carries docker's message
 */
export async function docker(...args) {
  try {
    const { stdout } = await run('docker', args, { cwd: root, timeout: TIMEOUT_MS, maxBuffer: 64 * 1_024 ** 2 })
    return stdout.trim()
  } catch (error) {
    const { stderr, message } = /** @type {Error & { stderr?: string }} */ (error)
    throw new Error(`docker ${args.slice(0, 3).join(' ')}: ${stderr?.trim() || message}`)
  }
}

/** The project's containers, stopped ones included. @returns {Promise<Container[]>} */
export async function containers() {
  const ids = await docker('compose', 'ps', '--all', '--quiet')
  if (ids === '') return []
  const format = '{{.Id}} {{.Name}} {{index .Config.Labels "com.docker.compose.service"}}'
  const lines = await docker('inspect', '--format', format, ...ids.split('\n'))
  return lines.split('\n').map(line => {
    const [id, name, service] = line.split(' ')
    return { id, name: name.slice(1), service }
  })
}

/** @param {Container} container @returns {Promise<State>} */
export async function inspect({ id }) {
  return JSON.parse(await docker('inspect', id))[0]
}

/**
 * Runs a script in a container of ours, with that container's own Node.
 *
 * @param {Container} container
 * @param {string} script
 */
export function evaluate({ id }, script) {
  return docker('exec', id, 'node', '--input-type=module', '--eval', script)
}

/** The answer of a URL inside a container. @param {Container} container @param {string} url @param {string} [method] */
export function request(container, url, method = 'GET') {
  return evaluate(
    container,
    `process.stdout.write(await (await fetch(${JSON.stringify(url)}, { method: ${JSON.stringify(method)} })).text())`,
  )
}

/**
 * Kills the program of a container from inside, as a crash would. Process 1 is Docker's init, which no signal from inside
 * ends, so its one child is killed.
 *
 * @param {Container} container
 */
export async function crash({ id }) {
  // The container ends and this command with it, so its exit code says nothing.
  await docker('exec', id, 'sh', '-c', 'read -r child rest < /proc/1/task/1/children; kill -9 "$child"').catch(() => {})
}

/** @param {Container} container */
export async function isHealthy(container) {
  const { State } = await inspect(container)
  return State.Status === 'running' && (State.Health?.Status ?? 'healthy') === 'healthy'
}
