// The meaning of a backend's status for the key (RFC 9110 section 15).
import type { ErrorCode } from '@keycast/protocol'

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
