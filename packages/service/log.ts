// The log: one JSON object a line on stdout, or lines for a person at a terminal.
import { createRequire } from 'node:module'
import type { DestinationStream, Logger as Log, LoggerOptions } from 'pino'
import pino from 'pino'

export type { Logger as Log } from 'pino'

interface Options {
  /** Of the service. */
  name: string
  level?: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
  format?: 'json' | 'pretty'
  /** Stdout unless given. */
  destination?: DestinationStream
}

export function createLog({ name, level = 'info', format = 'json', destination }: Options): Log {
  const options: LoggerOptions = {
    name,
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: label => ({ level: label }) },
    serializers: { err: serializeError, error: serializeError },
    // A namespace's headers hold credentials of the backend, a request's headers those of a client.
    redact: { paths: ['headers', '*.headers', 'authorization', 'token'], censor: '[not logged]' },
  }
  // Both forms are written synchronously: otherwise the last line before an exit could be lost.
  if (format === 'pretty') {
    // Loaded only here: it takes 10 MB, for nothing where the log is JSON.
    const pretty = createRequire(import.meta.url)('pino-pretty')
    return pino(options, pretty({ sync: true, ignore: 'hostname', destination: destination ?? 1 }))
  }
  return pino(options, destination ?? pino.destination({ fd: 1, sync: true }))
}

/**
 * Only named fields of an error are logged, because libraries attach whole requests to theirs, credentials included.
 */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { name, message, code, stack, cause } = error as NodeJS.ErrnoException & { cause?: unknown }
  return { type: name, message, code, stack, cause: cause instanceof Error ? serializeError(cause) : undefined }
}
