// Checks before the start that every port the system will listen on is free, and names all that are not in one error.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { StartError } from './start-error.ts'

/**
 * @typedef {object} Port
 * @property {string} service the service that listens on it
 * @property {string} host
 * @property {number} port
 * @property {string} variable the variable that changes it
 */

/**
 * @param {Port[]} ports
 * @throws {StartError} names every port that is not free, the variable that changes it and the remedy
 */
export async function requireFreePorts(ports) {
  const problems = [...clashesAmong(ports)]
  for (const wanted of ports) {
    const problem = await problemOf(wanted)
    if (problem) problems.push(problem)
  }
  if (problems.length > 0) throw new StartError(problems.join('\n'))
}

/** @param {Port[]} ports @returns {Iterable<string>} */
function* clashesAmong(ports) {
  /** @type {Map<number, Port>} */
  const taken = new Map()
  for (const wanted of ports) {
    const first = taken.get(wanted.port)
    if (wanted.port === 0) {
      yield `${wanted.variable}=0: set a fixed port, because the other services must know it.`
    } else if (first) {
      yield `Port ${wanted.port} is set for both ${first.service} (${first.variable}) and ${wanted.service} (${wanted.variable}): change one of them.`
    } else {
      taken.set(wanted.port, wanted)
    }
  }
}

/** @param {Port} wanted @returns {Promise<string | undefined>} */
async function problemOf({ service, host, port, variable }) {
  const server = createServer()
  try {
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return undefined
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    const where = `Port ${port} on ${host}, which ${service} needs,`
    const otherwise = `choose another: ${variable}=${suggestionFor(port)} npm start`
    if (code === 'EADDRINUSE') return `${where} is in use by another program. Stop that program, or ${otherwise}`
    if (code === 'EACCES') return `${where} is closed to this user, who may listen on ports from 1024 up: ${otherwise}`
    return `${where} cannot be listened on: ${message}`
  }
}

/** A port to try instead. @param {number} port that is not free */
export function suggestionFor(port) {
  return port + 10_000 <= 65_535 ? port + 10_000 : port - 10_000
}
