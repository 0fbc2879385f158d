// A viewer's token, kept to ask the backend with. Whatever writes it down by mistake, as a log does, writes no token.
import { inspect } from 'node:util'

const SHOWN = '[token]'

export class Bearer {
  #token

  /** @param {string} token that was verified */
  constructor(token) {
    this.#token = token
  }

  /** The value of `Authorization`, whichever way the token came. Secret: for the backend alone. */
  authorization() {
    return `Bearer ${this.#token}`
  }

  /** @param {Bearer | undefined} other */
  isSameAs(other) {
    return other !== undefined && other.#token === this.#token
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
