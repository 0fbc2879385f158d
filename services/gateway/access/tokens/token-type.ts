// What a token was made for, as the `typ` of its header says (RFC 8725 section 3.11). An issuer signs more than access
// tokens with its keys: one that was made to prove something else must admit nobody here.

/** Those taken unless keycast.yaml names one. Most issuers write `JWT` or nothing; RFC 9068 asks for `at+jwt`. */
const usual = new Set([undefined, 'jwt', 'at+jwt'])

/**
 * The type in the form in which types are compared: a media type, whose `application/` may be left out (RFC 7515 section
 * 4.1.9).
 */
export const typeOf = (typ: string) => typ.toLowerCase().replace(/^application\//, '')

/** The reason why a text of keycast.yaml names no type, or `undefined`. */
export const typeProblem = (typ: string) =>
  /^[a-z0-9][a-z0-9.+_-]{0,63}$/.test(typeOf(typ)) ? undefined : 'must be as the header of a token has it, as in at+jwt'

/**
 * @param wanted of an entry of access.tokens, in the compared form
 * @param type of a token, likewise
 */
export const isOfType = (wanted: string | undefined, type: string | undefined) =>
  wanted === undefined ? usual.has(type) : type === wanted
