// Says why a service cannot listen in the words of its settings: an address and a port alone do not say which to change.
import type { Config, Setting } from './settings/settings.ts'

type ListenError = NodeJS.ErrnoException & { address?: string; port?: number; hostname?: string }
type Settings = Record<string, Setting<unknown>>

/** A name that leads to no address: of the resolver, and of ZeroMQ. */
const unknownName = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ENODEV'])

/**
 * @param listeners the fields of each address that it listens on
 * @returns `undefined`: it is no such error
 */
export function readListenProblem<S extends Settings>(
  settings: S,
  config: Config<S>,
  listeners: [host: keyof S & string, port: keyof S & string][],
): (error: unknown) => string | undefined {
  return error => {
    const { code = '', address, hostname, port } = (error ?? {}) as Partial<ListenError>
    const found = listeners.filter(
      fields =>
        (port === undefined || config[fields[1]] === port) && [address, hostname].includes(config[fields[0]] as string),
    )
    // Two, where two settings ask for one port.
    const written = (which: 0 | 1) => {
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
