#!/usr/bin/env node
// Makes the secrets of a deployment, once: the API token, the backbone's CURVE keys, Grafana's first password.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createCurveKeyPair } from '@keycast/backbone'

const usage = `Usage: node scripts/secrets.js FOLDER

Writes a folder of secrets for each service, one file each, readable by its owner:

  FOLDER/gateway/api-token           bearer token of the internal calls   (API_TOKEN_FILE)
  FOLDER/gateway/curve-secret-key    this gateway's key                   (BACKBONE_SECRET_KEY_FILE)
  FOLDER/gateway/curve-server-key    the fetcher's public key             (BACKBONE_SERVER_KEY_FILE)
  FOLDER/fetcher/curve-secret-key    the fetcher's key                    (BACKBONE_SECRET_KEY_FILE)
  FOLDER/fetcher/curve-client-keys   public keys of the gateways admitted (BACKBONE_CLIENT_KEYS_FILE)
  FOLDER/grafana/admin-password      readable by all who see the folder   (GF_SECURITY_ADMIN_PASSWORD__FILE)

All gateways share one key, all fetcher nodes another. Secrets that are there already are left as they are.`

/**
 * The files of a new deployment.
 *
 * @returns {Record<string, string>} content by path
 */
export function createSecrets() {
  const fetcher = createCurveKeyPair()
  const gateway = createCurveKeyPair()
  return {
    'gateway/api-token': randomBytes(32).toString('base64url'),
    'gateway/curve-secret-key': gateway.secretKey,
    'gateway/curve-server-key': fetcher.publicKey,
    'fetcher/curve-secret-key': fetcher.secretKey,
    'fetcher/curve-client-keys': gateway.publicKey,
    'grafana/admin-password': randomBytes(18).toString('base64url'),
  }
}

/**
 * Writes new secrets unless there are some.
 *
 * @param {string} folder
 * @returns {'made' | 'kept'}
 * @throws {Error} when some are there and some are missing: keys that do not fit together would only show as silence
 */
export function ensureSecrets(folder) {
  const secrets = createSecrets()
  const paths = Object.keys(secrets)
  const present = paths.filter(path => filesIn(join(folder, path, '..')).includes(path.split('/')[1]))
  if (present.length === paths.length) return 'kept'
  if (present.length > 0) {
    const missing = paths.filter(path => !present.includes(path))
    throw new Error(`${folder} lacks ${missing.join(', ')}: remove the others, or put it back`)
  }
  for (const [path, content] of Object.entries(secrets)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    // Grafana's image runs under a user of its own.
    writeFileSync(join(folder, path), content, { mode: path.startsWith('grafana/') ? 0o444 : 0o400, flag: 'wx' })
  }
  return 'made'
}

/** @param {string} folder */
function filesIn(folder) {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) return console.log(usage)
  if (positionals.length !== 1) throw new Error('name one folder; --help says more')
  console.log(`secrets in ${positionals[0]}: ${ensureSecrets(positionals[0])}`)
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  try {
    main()
  } catch (error) {
    console.error(`secrets: ${/** @type {Error} */ (error).message}`)
    process.exit(2)
  }
}
