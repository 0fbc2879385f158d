// A service's part of the envelope: its kinds of positions, answers, notices, commands, results and heads, and their
// bytes. Links and hubs carry them without looking inside; values-codec.ts is the one of values.
import { excerpt } from '@keycast/protocol'

/**
 * The types of one service.
 *
 * - `Position`: how far a gateway is with a key, e.g. the version it holds.
 * - `Payload`: what else a want says, e.g. whether it wants to hear who is there. At its top level only texts may be
 *   long.
 * - `Answer`: what a node says of a key.
 * - `Notice`: what a node is told once, and done when it was heard.
 * - `Command`: what a node is to do; done when its explicit `Result` came back.
 * - `Heads`: how far the node is, said with each beat.
 */
export interface Service {
  Position: unknown
  Payload: unknown
  Answer: { key: string }
  Notice: unknown
  Command: unknown
  Result: unknown
  Heads: unknown
}

/** A part of a peer's message, as JSON.parse has it: every field of it has to be checked. */
// biome-ignore lint/suspicious/noExplicitAny: checks of unknown fields, one by one, would be longer than the readers
export type Sent = any

/** A JSON object, and the parts that follow it untouched. */
export interface Encoded {
  head: unknown
  parts: Buffer[]
  /** Roughly, where the head may be long. */
  headBytes?: number
}

/**
 * The readers are given JSON objects that a peer sent. Each throws {@link WireError} if a known field is missing or
 * wrong, and ignores unknown fields. A reader that returns `undefined` does not know the kind: a newer peer's. A
 * service without notices, commands or heads leaves their readers out.
 */
export interface Codec<S extends Service> {
  /** `name/major.minor`: see {@link isCompatible} */
  wire: string
  readPosition: (head: Sent) => S['Position']
  readPayload?: (head: Sent) => S['Payload']
  /** Passes bodies on, never copies them. */
  encodeAnswer: (answer: S['Answer']) => Encoded
  decodeAnswer: (head: Sent, parts: Buffer[]) => S['Answer'] | undefined
  readNotice?: (head: Sent) => S['Notice'] | undefined
  encodeCommand?: (command: S['Command']) => Encoded
  decodeCommand?: (head: Sent, parts: Buffer[]) => S['Command'] | undefined
  /** As it is where it is left out. */
  encodeResult?: (result: S['Result']) => unknown
  readResult?: (head: Sent) => S['Result']
  readHeads?: (head: Sent) => S['Heads']
}

/** A message that breaks the wire format: its bytes were damaged, or a stranger wrote it. */
export class WireError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WireError'
  }
}

/**
 * Whether two wire versions understand each other: of one name and one major. A new minor only adds fields and kinds,
 * which older peers ignore; everything else is a new major.
 */
export function isCompatible(theirs: string, ours: string) {
  return theirs === ours || nameAndMajor(theirs) === nameAndMajor(ours)
}

const nameAndMajor = (wire: string) => wire.split('.', 1)[0]

/** Characters of an id: a link's, a log's, an epoch's. */
const ID_CHARACTERS_MAX = 64

export const isId = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= ID_CHARACTERS_MAX

export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** @throws {WireError} @param head of an answer that lacks something */
export function incomplete({ type, key }: Sent): never {
  throw new WireError(`the answer "${type}" for ${excerpt(key)} is incomplete`)
}

/** @throws {WireError} */
export function parseJson(part: Buffer): Sent {
  try {
    return JSON.parse(part.toString())
  } catch {
    throw new WireError('a part is not JSON')
  }
}

/** @throws {WireError} */
export function readKey(key: unknown): string {
  if (typeof key !== 'string') throw new WireError(`a key is not a string: ${excerpt(key)}`)
  return key
}

export function bytesOf(parts: Buffer[]) {
  let bytes = 0
  for (const part of parts) bytes += part.length
  return bytes
}

/** Characters of the texts in a flat object. Only texts may be long: nothing else has to be counted. */
export function textIn(fields: unknown) {
  let characters = 0
  for (const field in fields as object) {
    const value = (fields as Record<string, unknown>)[field]
    if (typeof value === 'string') characters += value.length
  }
  return characters
}
