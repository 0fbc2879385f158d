// A viewer's token, kept to ask the backend with. A log that writes this object by mistake writes no token.
import { inspect } from 'node:util'
import { tokenDigest } from '@keycast/backbone'

const SHOWN = '[token]'

export class Bearer {
  #token
  #digest: string | undefined

  /** @param token that was verified */
  constructor(token: string) {
    this.#token = token
  }

  /** The value of `Authorization`, whichever way the token came. Secret: for the backend alone. */
  authorization() {
    return `Bearer ${this.#token}`
  }

  /** Tells it from other tokens, and is no secret. */
  get digest() {
    this.#digest ??= tokenDigest(this.authorization())
    return this.#digest
  }

  toJSON() {
    return SHOWN
  }

  toString() {
    return SHOWN
  }

  [inspect.custom]() {
    return SHOWN
  }
}
