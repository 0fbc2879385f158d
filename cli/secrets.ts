// Makes the secrets of a deployment that are missing: the API token, the secret that signs users' tokens, the backbone's
// CURVE keys, Grafana's first password.
// Each is a unit that can be added or replaced without the others.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createCurveKeyPair, curvePairOf } from '@keycast/backbone'
import { runCommand } from './support/command.ts'

const usage = `Usage: keycast secrets FOLDER [--renew UNIT]...

Makes those of these files that are missing, each readable by its owner only, and leaves the others as they are:

  unit      file                              what it is
  token     FOLDER/gateway/api-tokens         tokens of the internal calls         (API_TOKENS_FILE)
  signing   FOLDER/gateway/jwt-secret         signs users' tokens, HS256           (JWT_SECRET_FILE)
            FOLDER/gateway/jwt-secret-old     the one before it, still accepted    (JWT_SECRET_OLD_FILE)
  keys      FOLDER/fetcher/curve-secret-key   the nodes' key                       (BACKBONE_SECRET_KEY_FILE)
            FOLDER/fetcher/curve-client-keys  public keys of the gateways admitted (BACKBONE_CLIENT_KEYS_FILE)
            FOLDER/gateway/curve-secret-key   this gateway's key                   (BACKBONE_SECRET_KEY_FILE)
            FOLDER/gateway/curve-server-key   the nodes' public key                (BACKBONE_SERVER_KEY_FILE)
  password  FOLDER/grafana/admin-password     readable by everybody in the folder  (GF_SECURITY_ADMIN_PASSWORD__FILE)

All gateways share one key, all fetcher nodes and the journal another: give the journal the files of fetcher/.

  --renew UNIT  makes the files of a unit anew; may be given several times. Running services keep what they read at
                their start: restart them in the order that docs/deploy/upgrades.md gives ("Rotating secrets")

  --drop-old-signing
                empties jwt-secret-old. A gateway refuses tokens signed with it from its next SIGHUP or start on.
                Before that, --renew signing is refused: it would drop that secret unseen

Exits with 0 when all files are there, with 2 when a file cannot be read or written, or keys do not fit together.`

/** Reads a file below the folder; of a unit that is made anew, only what was made of it so far. */
type Held = (path: string) => string | undefined

const SIGNING = 'gateway/jwt-secret'
const OLD_SIGNING = 'gateway/jwt-secret-old'

/** The file of each public key, and of the secret key that it is computed from. */
const publicHalves = {
  'gateway/curve-server-key': 'fetcher/curve-secret-key',
  'fetcher/curve-client-keys': 'gateway/curve-secret-key',
}

/** The files of each unit, in the order they are made. `before` is a file's earlier content. */
const units: Record<string, Record<string, (held: Held, before: Held) => string>> = {
  token: {
    'gateway/api-tokens': () => `operator:admin:${newToken()}\nbackend:refresh,put,publish:${newToken()}\n`,
  },
  signing: {
    // Written first: if the script breaks off after it, nothing is lost. If there was no secret, the file is empty and
    // signs nothing.
    [OLD_SIGNING]: (_, before) => before(SIGNING) ?? '',
    [SIGNING]: () => randomBytes(48).toString('base64url'),
  },
  keys: {
    ...Object.fromEntries(
      Object.entries(publicHalves).map(([publicPath, secretPath]) => [
        secretPath,
        held => newSecret(secretPath, publicPath, held),
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(publicHalves).map(([publicPath, secretPath]) => [
        publicPath,
        held => publicHalf(secretPath, held),
      ]),
    ),
  },
  password: { 'grafana/admin-password': () => randomBytes(18).toString('base64url') },
}

const newToken = () => randomBytes(32).toString('base64url')

/** @param publicPath of its public key */
function newSecret(secretPath: string, publicPath: string, held: Held) {
  // A new secret key would not fit the public one, and the only sign would be links that stay silent.
  if (held(publicPath) !== undefined) {
    throw new Error(`${secretPath} is missing: put it back, or make all keys anew with --renew keys`)
  }
  return createCurveKeyPair().secretKey
}

function publicHalf(secretPath: string, held: Held) {
  try {
    return curvePairOf(held(secretPath) ?? '').publicKey
  } catch (error) {
    throw new Error(`${secretPath}: ${(error as Error).message}`)
  }
}

/** Several gateways' keys may be admitted; our own gateways' key must be among them. */
function checkHalves(held: Held) {
  for (const [publicPath, secretPath] of Object.entries(publicHalves)) {
    const listed = (held(publicPath) ?? '').split(/[\s,]+/)
    if (!listed.includes(publicHalf(secretPath, held))) {
      throw new Error(`${publicPath} does not fit ${secretPath}: make all keys anew with --renew keys`)
    }
  }
}

/**
 * Makes what is missing.
 *
 * @param renewed units that are made anew
 * @returns the files made, below the folder
 * @throws {Error} if keys do not fit together, or a file cannot be read or written
 */
export function ensureSecrets(
  folder: string,
  renewed: string[] = [],
  { dropOldSigning = false }: { dropOldSigning?: boolean } = {},
): string[] {
  const unknown = renewed.find(unit => !Object.hasOwn(units, unit))
  if (unknown !== undefined) throw new Error(`--renew ${unknown}: must be one of ${Object.keys(units).join(', ')}`)

  if (dropOldSigning && renewed.includes('signing')) {
    throw new Error('--drop-old-signing beside --renew signing would refuse every token that was signed until now')
  }

  const before: Held = path => {
    const file = join(folder, path)
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined
  }
  const old = before(OLD_SIGNING)
  // The same as the present one where the renewal before was broken off: then it may be done again.
  if (renewed.includes('signing') && old && old !== before(SIGNING)) {
    throw new Error(
      `${OLD_SIGNING} still holds a secret, and --renew signing would drop it: every token signed with it would be refused. ` +
        'Once the last of them has expired, run --drop-old-signing first',
    )
  }
  const made: string[] = []
  for (const [unit, files] of Object.entries(units)) {
    /** New files of the unit, written only once all of them are made. */
    const created = new Map<string, string>()
    const anew = renewed.includes(unit)
    const held: Held = path => created.get(path) ?? (anew ? undefined : before(path))
    for (const [path, create] of Object.entries(files)) {
      if (dropOldSigning && path === OLD_SIGNING) created.set(path, '')
      else if (anew) created.set(path, create(held, before))
      else if (!existsSync(join(folder, path)))
        created.set(
          path,
          create(held, () => undefined),
        )
    }
    if (unit === 'keys') checkHalves(held)
    for (const [path, content] of created) write(join(folder, path), content, { shared: path.startsWith('grafana/') })
    made.push(...created.keys())
  }
  return made
}

/**
 * Writes a file and then moves it into place: one that was cut off would pass for a secret.
 *
 * @param options `shared`: readable by every user, because we do not know that of Grafana's image
 */
function write(file: string, content: string, { shared }: { shared: boolean }) {
  const written = `${file}.new`
  mkdirSync(dirname(file), { recursive: true })
  rmSync(written, { force: true })
  writeFileSync(written, content, { mode: shared ? 0o444 : 0o400, flag: 'wx', flush: true })
  renameSync(written, file)
}

const options = {
  renew: { type: 'string', multiple: true },
  'drop-old-signing': { type: 'boolean' },
} as const

export const run = (args: string[]) =>
  runCommand(
    { name: 'keycast secrets', usage, options, allowPositionals: true },
    ({ values, positionals }) => {
      const [folder] = positionals
      if (!folder || positionals.length > 1)
        throw new Error('give one folder, such as /srv/keycast/secrets (--help says more)')
      const made = ensureSecrets(folder, values.renew, { dropOldSigning: values['drop-old-signing'] })
      console.log(
        `secrets in ${folder}: ${made.length > 0 ? `made ${made.join(', ')}` : 'all are there, none was changed'}`,
      )
      return 0
    },
    args,
  )
