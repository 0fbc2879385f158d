// Checks before the start that every port the system will listen on is free, and names all that are not in one error.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { StartError } from './start-error.ts'

export interface Port {
  /** The service that listens on it. */
  service: string
  host: string
  port: number
  /** The variable that changes it. */
  variable: string
}

/** @throws {StartError} names every port that is not free, the variable that changes it and the remedy */
export async function requireFreePorts(ports: Port[]) {
  const problems = [...clashesAmong(ports)]
  for (const wanted of ports) {
    const problem = await problemOf(wanted)
    if (problem) problems.push(problem)
  }
  if (problems.length > 0) throw new StartError(problems.join('\n'))
}

function* clashesAmong(ports: Port[]): Iterable<string> {
  const taken = new Map<number, Port>()
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

async function problemOf({ service, host, port, variable }: Port): Promise<string | undefined> {
  const server = createServer()
  try {
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return undefined
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const where = `Port ${port} on ${host}, which ${service} needs,`
    const otherwise = `choose another: ${variable}=${suggestionFor(port)} npm start`
    if (code === 'EADDRINUSE') return `${where} is in use by another program. Stop that program, or ${otherwise}`
    if (code === 'EACCES') return `${where} is closed to this user, who may listen on ports from 1024 up: ${otherwise}`
    return `${where} cannot be listened on: ${message}`
  }
}

/** A port to try instead. @param port that is not free */
export function suggestionFor(port: number) {
  return port + 10_000 <= 65_535 ? port + 10_000 : port - 10_000
}
