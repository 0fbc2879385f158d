// Says why a service cannot listen in the words of its settings: an address and a port alone do not say which to change.

/**
 * @typedef {NodeJS.ErrnoException & { address?: string, port?: number, hostname?: string }} ListenError
 * @typedef {Record<string, import('./settings/settings.ts').Setting<any>>} Settings
 */

/** A name that leads to no address: of the resolver, and of ZeroMQ. */
const unknownName = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ENODEV'])

/**
 * @template {Settings} S
 * @param {S} settings
 * @param {import('./settings/settings.ts').Config<S>} config
 * @param {[host: keyof S & string, port: keyof S & string][]} listeners the fields of each address that it listens on
 * @returns {(error: unknown) => string | undefined} `undefined`: it is no such error
 */
export function readListenProblem(settings, config, listeners) {
  return error => {
    const { code = '', address, hostname, port } = /** @type {Partial<ListenError>} */ (error ?? {})
    const found = listeners.filter(
      fields =>
        (port === undefined || config[fields[1]] === port) &&
        [address, hostname].includes(/** @type {string} */ (config[fields[0]])),
    )
    // Two, where two settings ask for one port.
    const written = (/** @type {0 | 1} */ which) => {
      const all = found.map(fields => `${settings[fields[which]].env}=${config[fields[which]]}`)
      return all.length === 0 ? '' : `${[...new Set(all)].join(' and ')}: `
    }
    const where = [address, port].filter(part => part !== undefined).join(':')

    if (code === 'EADDRINUSE') return `${written(1)}${where} is in use: stop what uses it, or set another port`
    if (code === 'EACCES' && where) return `${written(1)}this user may not listen on ${where}`
    if (code === 'EADDRNOTAVAIL') {
      return `${written(0)}this host has no address ${address}: set one that it has, or 0.0.0.0 for all`
    }
    if (unknownName.has(code) && found.length > 0) return `${written(0)}no address of this name was found`
    return undefined
  }
}
