// CURVE keys (RFC 26/CURVEZMQ): one secret per service; the public half is computed, never configured beside it.
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { curveKeyPair } from 'zeromq'

/** Both in Z85, 40 characters. */
interface CurveKeyPair {
  publicKey: string
  secretKey: string
}

/** Z85: this gateway's secret, the nodes' public key. */
export interface LinkCurve {
  secretKey: string
  serverKey: string
}

// RFC 32/Z85: five characters for four bytes, most significant first.
const alphabet = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#'

/** The bytes before a raw X25519 private key in PKCS #8 (RFC 8410 section 7). */
const pkcs8Head = Buffer.from('302e020100300506032b656e04220420', 'hex')

export const createCurveKeyPair = curveKeyPair

/** The reason why a text is no CURVE key, or `undefined` if it is one. */
export function curveKeyProblem(key: string) {
  if (key.length !== 40) return `a CURVE key has 40 characters (Z85), not ${key.length}`
  for (const character of key) if (!alphabet.includes(character)) return 'a CURVE key is written in Z85'
  return undefined
}

/**
 * Checks the keys of one end of the backbone: all or none must be given, and each must be a key.
 *
 * @param keys by the name of the setting that holds them
 * @returns naming the setting, without the key
 */
export function curveKeyProblems(keys: Record<string, string[]>): string[] {
  const names = Object.keys(keys)
  const missing = names.filter(name => keys[name].length === 0)
  if (missing.length === names.length) return []
  return [
    ...missing.map(name => `${name} is not set: ${names.join(' and ')} go together`),
    ...names.flatMap(name =>
      keys[name].flatMap(key => {
        const problem = curveKeyProblem(key)
        return problem ? [`${name}: ${problem}`] : []
      }),
    ),
  ]
}

/**
 * The pair a secret key belongs to.
 *
 * @param secretKey Z85
 * @throws {Error} when it is no key; the text itself is not repeated
 */
export function curvePairOf(secretKey: string): CurveKeyPair {
  const problem = curveKeyProblem(secretKey)
  if (problem) throw new Error(`the secret key is no key: ${problem}`)
  const der = Buffer.concat([pkcs8Head, decodeZ85(secretKey)])
  const { x } = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })).export({ format: 'jwk' })
  return { publicKey: encodeZ85(Buffer.from(x as string, 'base64url')), secretKey }
}

/**
 * The socket options of an encrypted link, at the gateway's end.
 *
 * @throws {Error} when a key is none; secrets are not repeated
 */
export function linkSecurity({ secretKey, serverKey }: LinkCurve) {
  const problem = curveKeyProblem(serverKey)
  if (problem) throw new Error(`the server key is no key: ${problem}`)
  const { publicKey } = curvePairOf(secretKey)
  return { curveServerKey: serverKey, curvePublicKey: publicKey, curveSecretKey: secretKey }
}

/** @param bytes a multiple of four */
export function encodeZ85(bytes: Buffer) {
  let text = ''
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.readUInt32BE(at)
    for (let power = 85 ** 4; power >= 1; power /= 85) text += alphabet[Math.floor(word / power) % 85]
  }
  return text
}

/** @param text a multiple of five characters, all of the alphabet */
export function decodeZ85(text: string) {
  const bytes = Buffer.alloc((text.length / 5) * 4)
  for (let at = 0; at < text.length; at += 5) {
    let word = 0
    for (const character of text.slice(at, at + 5)) word = word * 85 + alphabet.indexOf(character)
    bytes.writeUInt32BE(word, (at / 5) * 4)
  }
  return bytes
}
