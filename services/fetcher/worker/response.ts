// From a backend's whole response to the result that the primary gets.
import { readContent } from './content.ts'
import { confirmedFreshnessOf, freshnessOf, retryAfterMsOf, validatorsOf } from './freshness.ts'
import { failureOfStatus } from './status.ts'

/**
 * @typedef {import('../work/messages.ts').Lease} Lease
 * @typedef {import('../work/messages.ts').Result} Result
 * @typedef {import('../work/messages.ts').FailedResult} FailedResult
 * @typedef {import('./freshness.ts').Headers} Headers
 *
 * @typedef {{ result: Result, body?: Buffer }} Pulled `body` exactly where the result is a `value`
 */

/**
 * @param {Lease} lease
 * @param {import('./http/exchange.ts').Response} response
 * @param {number} now milliseconds since 1970
 * @returns {Pulled}
 */
export function resultOf(lease, { status, headers, body: received }, now) {
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
 * @param {number} status
 * @param {Headers} headers
 * @param {number} now milliseconds since 1970
 * @returns {FailedResult | undefined} `undefined` where the body is needed
 */
export function failureOfHead(status, headers, now) {
  const failure = failureOfStatus(status)
  if (!failure) return undefined
  const result = failed(status, failure.code, failure.message)
  if (failure.code === 'not_found') return { ...result, maxAgeMs: freshnessOf(headers, now).maxAgeMs }
  if (failure.code === 'backend_error' || failure.code === 'backend_throttled') {
    return { ...result, retryAfterMs: retryAfterMsOf(headers, now) }
  }
  return result
}

/** @param {Lease} lease */
function isConditional({ etag, lastModified }) {
  return etag !== undefined || lastModified !== undefined
}

/** @param {number} status @param {FailedResult['code']} code @param {string} message @returns {FailedResult} */
function failed(status, code, message) {
  return { kind: 'failed', code, message, status }
}
