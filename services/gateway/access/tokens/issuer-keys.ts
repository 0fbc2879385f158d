// The keys of those who may sign tokens, as an entry of `access.tokens` names them: what would let strangers sign, or
// users of two issuers share a name, is refused at start.
import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { excerpt } from '@keycast/protocol'
import { algorithmsFor, publicAlgorithms, RSA_BITS_MAX, RSA_BITS_MIN, SECRET_ALGORITHM } from './algorithms.ts'

/** RFC 7518 section 3.2: a key for HS256 is at least as long as its hash. */
export const SECRET_BYTES_MIN = 32

/** Finds what is wrong with the address of a key set, if anything. */
export function jwksProblem(url: string) {
  if (!URL.canParse(url)) return 'must be an absolute URL, as in https://id.example.com/.well-known/jwks.json'
  const { protocol, hostname, username, password } = new URL(url)
  if (username || password) return 'must hold no user name and no password'
  if (protocol === 'https:') return undefined
  if (protocol !== 'http:') return 'must be https'
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
  return isLoopback ? undefined : 'must be https: over plain http anybody on the way could put in a key of their own'
}

/** The path leads into the entry. */
interface Problem {
  path: (string | number)[]
  message: string
}

/**
 * The keys of an entry, and all that is wrong with them.
 *
 * @returns no keys: all secrets are empty, and the entry is as if it were not there
 */
export function readKeys(
  {
    jwks,
    secret,
    publicKey,
    algorithms,
  }: { jwks?: string; secret?: string[]; publicKey?: string[]; algorithms?: string[] },
  folder: string,
): { keys: KeyObject[] | undefined; problems: Problem[] } {
  const given = [jwks, secret, publicKey].filter(each => each !== undefined).length
  if (given !== 1) {
    return { keys: [], problems: [{ path: [], message: 'must have one of jwks, secret and publicKey, and one only' }] }
  }
  const known = secret ? [SECRET_ALGORITHM] : publicAlgorithms
  if (!algorithms || algorithms.length === 0) {
    const message = `must have algorithms, as in [${secret ? SECRET_ALGORITHM : 'ES256'}]: a token signed otherwise is refused`
    return { keys: [], problems: [{ path: [], message }] }
  }
  const unknown = algorithms.find(algorithm => !known.includes(algorithm))
  if (unknown !== undefined) {
    const kind = secret ? 'a secret' : jwks ? 'jwks' : 'a publicKey'
    const message = `${excerpt(unknown)} is not for ${kind}: write ${known.join(', ')}`
    return { keys: [], problems: [{ path: ['algorithms'], message }] }
  }
  if (secret) return readSecrets(secret)
  return publicKey ? readPublicKeys(publicKey, algorithms, folder) : { keys: [], problems: [] }
}

function readSecrets(secrets: string[]): ReturnType<typeof readKeys> {
  const set = secrets.filter(secret => secret !== '')
  if (set.length === 0) return { keys: undefined, problems: [] }
  const problems = set.flatMap(secret => {
    const message = secretProblem(secret)
    return message ? [{ path: ['secret'], message }] : []
  })
  return { keys: set.map(secret => createSecretKey(secret, 'utf8')), problems }
}

function secretProblem(secret: string) {
  // With it, everybody who has the public key could sign.
  if (secret.includes('-----BEGIN')) return 'holds a key file, which is no secret to share: write it under publicKey'
  const bytes = Buffer.byteLength(secret)
  if (bytes >= SECRET_BYTES_MIN) return undefined
  return `has ${bytes} bytes: at least ${SECRET_BYTES_MIN} are needed. openssl rand -base64 48 makes one`
}

function readPublicKeys(files: string[], algorithms: string[], folder: string): ReturnType<typeof readKeys> {
  const keys: KeyObject[] = []
  const problems: Problem[] = []
  for (const file of files) {
    const read = readPublicKey(resolve(folder, file), algorithms)
    if (typeof read === 'string') problems.push({ path: ['publicKey'], message: read })
    else keys.push(read)
  }
  const idle = algorithms.find(algorithm => !keys.some(key => algorithmsFor(key).includes(algorithm)))
  if (problems.length === 0 && idle !== undefined) {
    const fitting = [...new Set(keys.flatMap(algorithmsFor))]
    problems.push({ path: ['algorithms'], message: `no key is for ${idle}: write ${fitting.join(', ')}` })
  }
  return { keys, problems }
}

/** @returns or what is wrong */
function readPublicKey(path: string, algorithms: string[]): KeyObject | string {
  let pem
  try {
    pem = readFileSync(path, 'utf8')
  } catch (error) {
    return `${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`
  }
  if (pem.includes('PRIVATE KEY')) {
    return `${path} holds a private key, which signs tokens: keep it away from here. openssl pkey -pubout makes the public one`
  }
  let key
  try {
    key = createPublicKey(pem)
  } catch {
    return `${path} holds no public key in PEM, as "-----BEGIN PUBLIC KEY-----"`
  }
  const bits = key.asymmetricKeyDetails?.modulusLength
  if (bits !== undefined && (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX)) {
    return `${path} holds a key of ${bits} bits: ${RSA_BITS_MIN} to ${RSA_BITS_MAX} are taken`
  }
  const fitting = algorithmsFor(key)
  if (fitting.length === 0) return `${path} holds a key of a kind that no algorithm here is for`
  if (!fitting.some(algorithm => algorithms.includes(algorithm))) {
    return `${path} holds a key for other algorithms: write ${fitting.join(', ')}`
  }
  return key
}

/**
 * Users of different issuers must not share a name: neither "1" of one and "1" of another, nor "ab" + "1" and "a" +
 * "b1".
 */
export function prefixProblems(entries: { entry: { prefix?: string }; index: number }[]) {
  const problems: { index: number; message: string }[] = []
  const [, ...bare] = entries.filter(({ entry }) => entry.prefix === undefined)
  for (const { index } of bare) {
    problems.push({
      index,
      message: 'is missing: of several entries all but one need one, or "1" of one issuer is "1" of another',
    })
  }
  for (const [position, { entry, index }] of entries.entries()) {
    const { prefix } = entry
    if (prefix === undefined) continue
    const clash = entries.slice(0, position).find(({ entry: { prefix: other } }) => {
      return other !== undefined && (other.startsWith(prefix) || prefix.startsWith(other))
    })
    if (!clash) continue
    const message = `${excerpt(prefix)} and ${excerpt(clash.entry.prefix)} begin alike: users of one could have names of the other`
    problems.push({ index, message })
  }
  return problems
}
