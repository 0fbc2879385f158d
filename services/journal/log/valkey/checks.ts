// Checks a Valkey's settings, so that nothing acknowledged is lost. Weaker settings are refused, in words that name the
// loss.
import { LogRefused } from '../log.ts'
import type { Session } from './connection.ts'
import { beginFile, CANNOT } from './file.ts'

/** The numbers of servers that must have a batch on disk before it is acknowledged: `local` is 0 or 1. */
interface Acknowledgement {
  local: number
  replicas: number
}

const demands: { name: string; isSafe: (value: string) => boolean; loss: (value: string) => string }[] = [
  {
    name: 'appendonly',
    isSafe: value => value === 'yes',
    loss: () => 'a restart loses messages that were acknowledged',
  },
  {
    name: 'appendfsync',
    isSafe: value => value === 'always',
    loss: value =>
      value === 'everysec'
        ? 'a crash of its machine loses about the last second of acknowledged messages'
        : 'a crash of its machine loses acknowledged messages, of half a minute perhaps',
  },
  {
    name: 'no-appendfsync-on-rewrite',
    isSafe: value => value === 'no',
    loss: () => 'a crash of its machine while the file is rewritten loses acknowledged messages',
  },
  {
    name: 'maxmemory-policy',
    isSafe: value => value === 'noeviction',
    loss: () => 'when its memory is full it drops whole histories, and nobody is told',
  },
]

/**
 * Looks at a server before it is used, and has it begin a file where it must.
 *
 * @returns `losses`: those accepted, and those that come with a failover
 * @throws {LogRefused}
 * @throws {Error} where another try can succeed
 */
export async function checkValkey(
  { read }: { read: Session['read'] },
  { where, replicasMin, allowsLoss }: { where: string; replicasMin: number; allowsLoss: boolean },
): Promise<{ acknowledgement: Acknowledgement; losses: string[] }> {
  const about = fieldsOf(String(await read(['INFO', 'server', 'replication', 'cluster'])))
  const wrong = kindProblem(about)
  if (wrong) throw new LogRefused(`Valkey at ${where} ${wrong}`)
  // During a failover the URL may still lead to the primary of before, also where a journal starts just then.
  if (about.get('role') !== 'master') throw new Error('it is a replica: VALKEY_URL must lead to the primary')

  const settings = await settingsOf(read)
  const losses = []
  if (!settings) losses.push('CONFIG GET is not allowed, so whether it keeps what it acknowledges is not known')
  for (const { name, isSafe, loss } of demands) {
    const value = settings?.get(name)
    if (value !== undefined && !isSafe(value)) losses.push(`${name} is ${value}: ${loss(value)}`)
  }
  const replicasToWrite = replicasDemanded(settings)
  if (settings && replicasToWrite < replicasMin) {
    const isOff = replicasToWrite === 0 && settings.get('min-replicas-to-write') !== '0'
    losses.push(
      `min-replicas-to-write is ${isOff ? 'off, by min-replicas-max-lag 0' : replicasToWrite}, below VALKEY_REPLICAS_MIN=${replicasMin}: a primary that is cut off ` +
        'from its replicas goes on taking messages, and a failover loses them',
    )
  }
  const refuse = (losses: string[]) => {
    throw new LogRefused(
      `Valkey at ${where} would lose messages. ${losses.map(loss => `${loss}. `).join('')}` +
        'Set it as docs/deploy/valkey.md says, or accept the loss with VALKEY_ALLOW_LOSS=true',
    )
  }
  if (losses.length > 0 && !allowsLoss) refuse(losses)
  const atFailover = replicasMin === 0 ? failoverLoss(about, settings) : undefined
  if (atFailover) losses.push(atFailover)
  const replids = [about.get('master_replid'), about.get('master_replid2')]
  const inFile = settings?.get('appendonly') === 'yes' ? await beginFile(read, replids) : undefined
  if (inFile && !allowsLoss) {
    if (CANNOT.test(inFile)) throw new Error(inFile)
    refuse([inFile])
  }
  if (inFile) losses.push(inFile)
  const isLocal = settings?.get('appendonly') === 'yes' && settings.get('appendfsync') === 'always'
  return { acknowledgement: { local: isLocal ? 1 : 0, replicas: replicasMin }, losses }
}

/**
 * While it fails over, the URL may lead one connection to the primary of before: what is written would not be what is read.
 *
 * @throws {Error} where another try can succeed
 */
export async function checkOneServer({ read, write }: Pick<Session, 'read' | 'write'>) {
  const about = await Promise.all([read, write].map(ask => ask(['INFO', 'server'])))
  const [one, other] = about.map(text => fieldsOf(String(text)).get('run_id'))
  if (one !== other) throw new Error('its two connections lead to two servers: VALKEY_URL must lead to the primary')
}

/** @returns the reason why no setting can help */
function kindProblem(about: Map<string, string>): string | undefined {
  const version = about.get('valkey_version') ?? about.get('redis_version') ?? '0'
  const [major, minor] = version.split('.').map(Number)
  if (major < 7 || (major === 7 && minor < 2)) return `is of release ${version}: it needs Valkey 7.2, which has WAITAOF`
  if (about.get('cluster_enabled') === '1') return 'is part of a cluster: a log is in one primary and its replicas'
  return undefined
}

/** @returns replicas without which Valkey takes no write */
function replicasDemanded(settings: Map<string, string> | undefined): number {
  return settings?.get('min-replicas-max-lag') === '0' ? 0 : Number(settings?.get('min-replicas-to-write') ?? 0)
}

/**
 * Replicas can be promoted, and a journal that waits for none acknowledges what they lack. A warning only: one without
 * failover has them for reading, or for backups.
 */
function failoverLoss(about: Map<string, string>, settings: Map<string, string> | undefined): string | undefined {
  const replicas = Number(about.get('connected_slaves') ?? 0)
  const wasPromoted = Number(about.get('second_repl_offset') ?? -1) !== -1
  if (replicas === 0 && !wasPromoted) return undefined
  const has = replicas > 0 ? `it has ${replicas} replica${replicas > 1 ? 's' : ''}` : 'it was a replica once'
  const until =
    replicasDemanded(settings) > 0
      ? `for ${settings?.get('min-replicas-max-lag')} s after it is cut off from them`
      : 'for as long as it is cut off from them'
  return (
    `VALKEY_REPLICAS_MIN is 0, and ${has}: a primary acknowledges messages that no replica has, also ${until}, ` +
    'and a failover loses them'
  )
}

/** @returns `undefined` if a managed Valkey does not say */
async function settingsOf(read: Session['read']): Promise<Map<string, string> | undefined> {
  const wanted = [...demands.map(({ name }) => name), 'min-replicas-to-write', 'min-replicas-max-lag']
  let reply
  try {
    reply = await read<Record<string, Buffer>>(['CONFIG', 'GET', ...wanted])
  } catch (error) {
    if (/^(NOPERM|ERR)/.test((error as Error).message)) return undefined
    throw error
  }
  return new Map(Object.entries(reply).map(([name, value]) => [name, String(value)]))
}

/** @param text of INFO */
function fieldsOf(text: string) {
  const fields = text.split('\r\n').filter(line => line.includes(':'))
  return new Map(fields.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}
