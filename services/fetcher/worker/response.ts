// From a backend's whole response to the result that the primary gets.
import type { FailedResult, Lease, Result } from '../work/messages.ts'
import { readContent } from './content.ts'
import type { Response } from './http/exchange.ts'
import { confirmedFreshnessOf, freshnessOf, type Headers, retryAfterMsOf, validatorsOf } from './response-headers.ts'
import { failureOfStatus } from './status.ts'

/** `body` exactly where the result is a `value`. */
export interface Pulled {
  result: Result
  body?: Buffer
}

/** @param now milliseconds since 1970 */
export function resultOf(lease: Lease, { status, headers, body: received }: Response, now: number): Pulled {
  const validators = validatorsOf(headers, now)
  const freshness = freshnessOf(headers, now)
  if (status === 304 && isConditional(lease)) {
    // Many a 304 leaves out what it confirms: without this a `no-store` value would be stored from then on.
    const confirmed = {
      etag: headers.etag === undefined ? lease.etag : validators.etag,
      lastModified: headers['last-modified'] === undefined ? lease.lastModified : validators.lastModified,
    }
    return { result: { kind: 'current', status, ...confirmedFreshnessOf(headers, now), ...confirmed } }
  }
  const failure = failureOfHead(status, headers, now)
  if (failure) return { result: failure }

  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return { result: failed(status, 'invalid_content', 'the content is in an encoding that was not asked for') }
  }
  const read = readContent(received, {
    contentType: headers['content-type'],
    version: lease.version,
    bytesMax: lease.bytesMax,
  })
  if (read.kind === 'failed') return { result: { ...read, status } }
  if (read.kind === 'current') return { result: { kind: 'current', status, ...freshness, ...validators } }
  const { body, ...content } = read
  return { result: { ...content, status, ...freshness, ...validators }, body }
}

/**
 * The failure that a response's status and header alone decide, whatever becomes of its body.
 *
 * @param now milliseconds since 1970
 * @returns `undefined` where the body is needed
 */
export function failureOfHead(status: number, headers: Headers, now: number): FailedResult | undefined {
  const failure = failureOfStatus(status)
  if (!failure) return undefined
  const result = failed(status, failure.code, failure.message)
  if (failure.code === 'not_found') return { ...result, maxAgeMs: freshnessOf(headers, now).maxAgeMs }
  if (failure.code === 'backend_error' || failure.code === 'backend_throttled') {
    return { ...result, retryAfterMs: retryAfterMsOf(headers, now) }
  }
  return result
}

function isConditional({ etag, lastModified }: Lease) {
  return etag !== undefined || lastModified !== undefined
}

function failed(status: number, code: FailedResult['code'], message: string): FailedResult {
  return { kind: 'failed', code, message, status }
}
