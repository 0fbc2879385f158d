// A service's part of the envelope: its kinds of positions, answers, notices, commands, results and heads, and their
// bytes. Links and hubs carry them without looking inside; values-codec.ts is the one of values.
import { excerpt } from '@keycast/protocol'

/**
 * The types of one service.
 *
 * - `Position`: how far a gateway is with a key, e.g. the version it holds.
 * - `Payload`: what else a want says, e.g. whether it wants to hear who is there. At its top level only texts may be long.
 * - `Answer`: what a node says of a key.
 * - `Notice`: what a node is told once, and done when it was heard.
 * - `Command`: what a node is to do; done when its explicit `Result` came back.
 * - `Heads`: how far the node is, said with each beat.
 *
 * @typedef {{ Position: any, Payload: any, Answer: { key: string }, Notice: any, Command: any, Result: any,
 *   Heads: any }} Service
 *
 * A JSON object, and the parts that follow it untouched.
 * @typedef {{ head: any, parts: Buffer[] }} Encoded
 */

/**
 * The readers are given JSON objects that a peer sent. Each throws {@link WireError} if a known field is missing or
 * wrong, and ignores unknown fields. A reader that returns `undefined` does not know the kind: a newer peer's. A
 * service without notices, commands or heads leaves their readers out.
 *
 * @template {Service} S
 * @typedef {object} Codec
 * @property {string} wire `name/major.minor`: see {@link isCompatible}
 * @property {(head: any) => S['Position']} readPosition
 * @property {(head: any) => S['Payload']} [readPayload]
 * @property {(answer: S['Answer']) => Encoded} encodeAnswer passes bodies on, never copies them
 * @property {(head: any, parts: Buffer[]) => S['Answer'] | undefined} decodeAnswer
 * @property {(head: any) => S['Notice'] | undefined} [readNotice]
 * @property {(command: S['Command']) => Encoded} [encodeCommand]
 * @property {(head: any, parts: Buffer[]) => S['Command'] | undefined} [decodeCommand]
 * @property {(head: any) => S['Result']} [readResult]
 * @property {(head: any) => S['Heads']} [readHeads]
 */

/** A message that breaks the wire format: its bytes were damaged, or a stranger wrote it. */
export class WireError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message)
    this.name = 'WireError'
  }
}

/**
 * Whether two wire versions understand each other: of one name and one major. A new minor only adds fields and kinds,
 * which older peers ignore; everything else is a new major.
 *
 * @param {string} theirs @param {string} ours
 */
export function isCompatible(theirs, ours) {
  return theirs === ours || nameAndMajor(theirs) === nameAndMajor(ours)
}

/** @param {string} wire */
const nameAndMajor = wire => wire.split('.', 1)[0]

/** @param {unknown} key @returns {string} */
export function readKey(key) {
  if (typeof key !== 'string') throw new WireError(`a key is not a string: ${excerpt(key)}`)
  return key
}
