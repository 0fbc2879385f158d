// What a tab and the shared worker say to each other: plain objects, which a MessagePort copies.
import { KeycastError } from '../errors.js'

/**
 * One more with each change of what they say. Tabs that were loaded after an update then begin a worker of their own: one
 * that older tabs keep alive would not understand them.
 */
export const LANGUAGE = 3

/** @param {any} error @returns {unknown} what a port can carry */
export const packError = error =>
  error instanceof KeycastError ? { ...error, message: error.message } : { thrown: String(error?.message ?? error) }

/** @param {any} packed @returns {Error} */
export function unpackError({ thrown, ...fields }) {
  if (thrown !== undefined) return new Error(thrown)
  return Object.assign(new KeycastError(fields), fields)
}
