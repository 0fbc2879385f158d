// The record of what operators did, a line of JSON each: in a file of its own, or on the standard output.
import { appendFileSync } from 'node:fs'
import { Misconfigured } from '@keycast/service'

interface Deps {
  /** Empty: the standard output. It is opened for each line, so it may be moved away at any time. */
  path: string
  log: { error: (fields: object, text: string) => void }
}

/** @throws {Misconfigured} where the file cannot be written */
export function createAuditLog({ path, log }: Deps): (line: string) => void {
  if (path === '') return line => void process.stdout.write(`${line}\n`)
  // Its lines name users and addresses.
  const append = (text: string) => appendFileSync(path, text, { mode: 0o600 })
  try {
    append('')
  } catch (error) {
    throw new Misconfigured(`GATEWAY_AUDIT_LOG: ${(error as Error).message}`)
  }
  return line => {
    try {
      append(`${line}\n`)
    } catch (error) {
      log.error({ err: error, line }, 'the audit log cannot be written: the line stands here')
    }
  }
}
