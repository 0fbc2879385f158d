// The keycast.yaml of a system that is started.
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { publicHalf, type Signing } from '../generator/tokens.ts'
import type { Content } from './start.ts'

/** The rooms of a chat, with room for those who are far behind. */
const ROOMS = {
  source: 'journal',
  history: { messages: 10_000, age: '1h', bytes: '64MiB' },
  publish: 'client',
  members: 'named',
  names: 'unique',
}

export function writeConfig(
  path: string,
  { providerUrl, content, signing }: { providerUrl: string; content: Content; signing?: Signing },
) {
  writeFileSync(path, configOf(providerUrl, content, signing && writeIssuer(signing, dirname(path))))
}

/**
 * The entry of `access.tokens` for the clients' tokens.
 *
 * @param directory for its public key
 */
function writeIssuer(signing: Signing, directory: string) {
  const { algorithm } = signing
  if ('secret' in signing) return { secret: signing.secret, algorithms: [algorithm] }
  const publicKey = join(directory, 'clients.pem')
  writeFileSync(publicKey, publicHalf(signing))
  return { publicKey, algorithms: [algorithm] }
}

/**
 * keycast.yaml; JSON is YAML. If clients bring tokens, others may still connect, and read nothing but `text`. Rooms are
 * open to everybody.
 *
 * @param issuer of the clients' tokens
 */
function configOf(
  providerUrl: string,
  { tickMs = 500, idle = false, refreshMs = 1_000, rooms, pushed }: Content,
  issuer?: object,
) {
  const refresh = idle ? 0 : `${refreshMs}ms`
  const anonymous = { read: [issuer ? 'text:*' : '*:**'], ...(rooms && { publish: ['room:*'], join: ['room:*'] }) }
  return JSON.stringify({
    access: { anonymous, tokens: issuer ? [issuer] : [] },
    namespaces: {
      conversation: { source: 'http', url: `${providerUrl}/conversations/{id}`, refresh },
      text: { source: 'http', url: `${providerUrl}/text/{id}`, refresh },
      told: { source: 'http', url: `${providerUrl}/conversations/{id}`, refresh: 0 },
      tick: { source: 'http', url: `${providerUrl}/ticks/{id}`, refresh: `${tickMs}ms` },
      ...(rooms && { room: ROOMS }),
      ...(pushed && { handed: { source: 'pushed' } }),
    },
  })
}
