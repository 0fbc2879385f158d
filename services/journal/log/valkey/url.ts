// The address of a Valkey, as an operator writes it.

const PROTOCOLS = new Set(['valkey:', 'valkeys:', 'redis:', 'rediss:'])

/** The problem with a URL, if any. Its text is not repeated: it may hold a password. */
export function valkeyUrlProblem(url: string): string | undefined {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const isGood =
    parsed && PROTOCOLS.has(parsed.protocol) && parsed.hostname !== '' && /^(\/\d{0,3})?$/.test(parsed.pathname)
  return isGood ? undefined : 'must be like valkey://host:6379 or, with TLS, valkeys://user:password@host:6379/0'
}

/** As the client package knows it. */
export const clientUrl = (url: string) => url.replace(/^valkey/, 'redis')

/** Host and port, for messages. */
export const hostOf = (url: string) => new URL(clientUrl(url)).host
