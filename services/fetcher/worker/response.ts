// From a backend's whole response to the result that the primary gets; and the meaning of its status for the key (RFC 9110
// section 15).
import type { ErrorCode } from '@keycast/protocol'
import { type Headers, readContent, retryAfterMsOf } from '@keycast/service'
import type { FailedResult, Lease, Result } from '../worker-messages.ts'
import { readBatch } from './batch.ts'
import type { Response } from './http/exchange.ts'
import { confirmedFreshnessOf, freshnessOf, validatorsOf } from './response-headers.ts'

/**
 * `body` exactly where the result is a `value`, or `hasBody`. `others`: of a batch's other keys, unless the result is of all.
 * `askedAt`: see exchange.ts.
 */
export interface Pulled {
  result: Result
  body?: Buffer
  others?: Pulled[]
  askedAt?: number
}

/** @param now milliseconds since 1970 */
export function resultOf(lease: Lease, { status, headers, body: received }: Response, now: number): Pulled {
  const validators = validatorsOf(headers, now)
  const freshness = freshnessOf(headers, now)
  const waited = lease.waitSeconds === undefined ? undefined : hasWaited(headers)
  if (status === 304 && isConditional(lease)) {
    // Many a 304 leaves out what it confirms. Others name what the value has become since the backend compared: sent back,
    // that would have the newer value taken for the one that is held, for good.
    const { etag, lastModified } = lease
    return { result: { kind: 'current', status, ...confirmedFreshnessOf(headers, now), etag, lastModified, waited } }
  }
  const failure = failureOfHead(status, headers, now)
  if (failure) return { result: failure }

  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return { result: failed(status, 'invalid_content', 'the content is in an encoding that was not asked for') }
  }
  if (lease.batch) return readBatch(lease.batch, received, { status, ...freshness })
  const read = readContent(received, {
    contentType: headers['content-type'],
    version: lease.version,
    bytesMax: lease.bytesMax,
  })
  if (read.kind === 'failed') return { result: { ...read, status } }
  if (read.kind === 'current') return { result: { kind: 'current', status, ...freshness, ...validators, waited } }
  const { body, ...content } = read
  return { result: { ...content, status, ...freshness, ...validators, waited }, body }
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

const hasWaited = (headers: Headers) => /(?:^|[\s,;])wait\b/i.test(headers['preference-applied'] ?? '')

function isConditional({ etag, lastModified }: Lease) {
  return etag !== undefined || lastModified !== undefined
}

function failed(status: number, code: FailedResult['code'], message: string): FailedResult {
  return { kind: 'failed', code, message, status }
}

/**
 * The failure a status stands for, or `undefined` where the response holds the key's value. 304 is no failure where it
 * was asked for: the caller has seen to that before.
 */
export function failureOfStatus(status: number): { code: ErrorCode; message: string } | undefined {
  switch (status) {
    case 200:
    case 203: // changed on its way by a proxy, and still the key's content
      return undefined
    case 204:
    case 205:
      // The backend has nothing to show under this key, now: an answer to keep and to ask again for, as 404 is. As a
      // value it could not be shown (no JSON is empty), and as an error it would count against a healthy backend.
      return { code: 'not_found', message: `the backend has no content under this key (${status})` }
    case 404:
    case 410:
      return { code: 'not_found', message: `the backend has nothing under this key (${status})` }
    case 429:
      return { code: 'backend_throttled', message: 'the backend asks for fewer requests (429)' }
    case 304:
      return { code: 'backend_error', message: 'the backend answered 304 to a request without validators' }
  }
  if (status >= 300 && status < 400) {
    return {
      code: 'backend_redirect',
      message: `the backend answered with a redirect (${status}), which is not followed`,
    }
  }
  if (status >= 400 && status < 500) {
    return { code: 'backend_refused', message: `the backend refused the request (${status})` }
  }
  if (status >= 200 && status < 300) {
    // 202: not ready. 206: a part that nobody asked for. The rest do not answer a GET. None is the whole content.
    return { code: 'backend_error', message: `the backend answered ${status}, which is not the key's whole content` }
  }
  return { code: 'backend_error', message: `the backend failed (${status})` }
}
