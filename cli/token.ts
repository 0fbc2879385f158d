// Makes a token for trying: signed with the secret or the private key whose other half `access.tokens` names.
import { createPrivateKey, type KeyObject, randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { duration, readVariable, withoutLineBreak } from '@keycast/service'
import { SignJWT } from 'jose'
import { type Rule, readRule, verbs } from '../services/gateway/access/rule.ts'
import { algorithmsFor, SECRET_ALGORITHM } from '../services/gateway/access/tokens/algorithms.ts'
import { SECRET_BYTES_MIN } from '../services/gateway/access/tokens/issuer-keys.ts'
import { runCommand } from './support/command.ts'
import { signingSecretFile } from './support/signing-secret.ts'

const usage = `Usage: keycast token --sub USER [--read PATTERN]... [--publish PATTERN]... [--join PATTERN]... [options]

Prints a token (JWT) for trying, as in

  npx keycast token --sub ann --read 'conversation:*' --ttl 1h                       # while npm start runs
  docker compose exec gateway keycast token --sub ann --read 'conversation:*'        # in containers
  JWT_SECRET=… npx keycast token --sub ann --read 'room:*' --read 'user:{sub}'

Patterns are namespace:id, where * stands for a segment, a final ** for one or more, and {sub} for the user's name.

  --sub USER           who brings it
  --read PATTERN       a pattern of keys it grants; each may be given several times
  --publish PATTERN
  --join PATTERN
  --history PATTERN    this and the next: where access names them; else --read grants both
  --members PATTERN
  --ttl TIME           how long it is valid, as in 90s, 30m, 1h (default: 1h)
  --issuer TEXT        iss, where the entry in access.tokens has an issuer
  --audience TEXT      aud, where it has an audience
  --claim NAME         where it says what it grants, as access.claim (default: keys)

Signed with a shared secret, HS256:

  --secret-file FILE   holds the secret (default: JWT_SECRET, JWT_SECRET_FILE, or what npm start made in .keycast)

or with a private key:

  --key FILE           holds it, in PEM (PKCS #8). openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 makes
                       one for ES256, and openssl pkey -pubout its public half for access.tokens
  --alg NAME           as in ES256, RS256, EdDSA (default: the first that the key is for)
  --kid NAME           the key's name, where the other half is one of a JWKS`

interface Wanted {
  sub: string
  rights: Rule
  ttlMs: number
  claim: string
  issuer?: string
  audience?: string
  kid?: string
}

interface Signing {
  algorithm: string
  key: Uint8Array | KeyObject
}

function sign({ sub, rights, ttlMs, claim, issuer, audience, kid }: Wanted, { algorithm, key }: Signing) {
  const granted = verbs.filter(verb => rights[verb].length > 0)
  const texts = granted.map(verb => [verb, rights[verb].map(({ text }) => text)])
  const nowSeconds = Math.floor(Date.now() / 1_000)
  const jwt = new SignJWT(granted.length > 0 ? { [claim]: Object.fromEntries(texts) } : {})
    .setProtectedHeader({ alg: algorithm, typ: 'JWT', ...(kid !== undefined && { kid }) })
    .setSubject(sub)
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + Math.ceil(ttlMs / 1_000))
    .setJti(randomUUID())
  if (issuer !== undefined) jwt.setIssuer(issuer)
  if (audience !== undefined) jwt.setAudience(audience)
  return jwt.sign(key)
}

function readSigning(
  { key, alg, secretFile }: { key?: string; alg?: string; secretFile?: string },
  env: NodeJS.ProcessEnv,
  madeFile: string,
): Signing {
  if (key !== undefined && secretFile !== undefined) throw new Error('give --key or --secret-file, not both')
  if (key !== undefined) return readKey(key, alg)
  if (alg !== undefined && alg !== SECRET_ALGORITHM) {
    throw new Error(`--alg ${alg} needs a private key: give --key FILE. With a secret it is ${SECRET_ALGORITHM}`)
  }
  const secret = readSecret(secretFile, env, madeFile)
  const bytes = Buffer.byteLength(secret)
  if (bytes < SECRET_BYTES_MIN) {
    throw new Error(
      `the secret has ${bytes} bytes: gateways take ${SECRET_BYTES_MIN} or more. openssl rand -base64 48 makes one`,
    )
  }
  return { algorithm: SECRET_ALGORITHM, key: Buffer.from(secret) }
}

function readSecret(file: string | undefined, env: NodeJS.ProcessEnv, madeFile: string) {
  if (file !== undefined) return withoutLineBreak(readText(file))
  const { text: set, problem } = readVariable(env, 'JWT_SECRET')
  if (problem) throw new Error(problem)
  if (set !== undefined) return set
  if (existsSync(madeFile)) return withoutLineBreak(readText(madeFile))
  throw new Error(
    'nothing to sign with: set JWT_SECRET, give --secret-file FILE or --key FILE, or run npm start, which makes a secret',
  )
}

function readKey(path: string, alg?: string): Signing {
  const pem = readText(path)
  let key
  try {
    key = createPrivateKey(pem)
  } catch {
    const isPublic = pem.includes('PUBLIC KEY') || pem.includes('CERTIFICATE')
    throw new Error(
      `${path} holds no private key in PEM${isPublic ? ': it holds a public one, which cannot sign' : ''}`,
    )
  }
  const fitting = algorithmsFor(key)
  const [algorithm] = alg === undefined ? fitting : fitting.filter(each => each === alg)
  if (algorithm !== undefined) return { algorithm, key }
  const which = fitting.length > 0 ? `it is for ${fitting.join(', ')}` : 'no algorithm here is for its kind'
  throw new Error(`${path} is not for ${alg ?? 'signing'}: ${which}`)
}

function readText(path: string) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
}

/** @param given by verb */
function readRights(given: Record<string, string[] | undefined>) {
  const written = Object.fromEntries(Object.entries(given).filter(([, patterns]) => patterns))
  const { rule, problems } = readRule(written, { user: true, strict: true })
  if (problems.length === 0) return rule
  throw new Error(problems.map(({ path: [verb], problem }) => `--${verb} ${problem}`).join('\n       '))
}

function readTtl(text: string) {
  const ttlMs = duration({ maxMs: Number.MAX_SAFE_INTEGER }).read(text)
  if (ttlMs > 0) return ttlMs
  throw new Error(`--ttl ${text}: must be a duration, as in 90s, 30m or 1h`)
}

const text = { type: 'string' } as const
const patterns = { type: 'string', multiple: true } as const

/** As `parseArgs` takes them. */
export const options = {
  sub: text,
  read: patterns,
  publish: patterns,
  join: patterns,
  history: patterns,
  members: patterns,
  ttl: text,
  issuer: text,
  audience: text,
  claim: text,
  'secret-file': text,
  key: text,
  alg: text,
  kid: text,
}

/**
 * @param madeFile the secret of `npm start`
 * @returns the token
 * @throws {Error} tells the form to give instead
 */
export async function makeToken(
  given: { [K in keyof typeof options]?: (typeof options)[K] extends typeof patterns ? string[] : string },
  env: NodeJS.ProcessEnv,
  madeFile: string = signingSecretFile,
): Promise<string> {
  const {
    sub,
    read,
    publish,
    join,
    history,
    members,
    ttl = '1h',
    issuer,
    audience,
    claim = 'keys',
    key,
    alg,
    kid,
  } = given
  if (!sub) throw new Error('name the user with --sub; --help says more')
  const rights = readRights({ read, publish, join, history, members })
  const signing = readSigning({ key, alg, secretFile: given['secret-file'] }, env, madeFile)
  return sign({ sub, rights, ttlMs: readTtl(ttl), claim, issuer, audience, kid }, signing)
}

export const run = (args: string[]) =>
  runCommand(
    { name: 'keycast token', usage, options: { ...options } },
    async ({ values }) => {
      console.log(await makeToken(values, process.env))
      return 0
    },
    args,
  )
