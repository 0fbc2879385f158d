// Names and secrets that no other client uses.

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** 132 random bits in 22 letters: a messageId, or the claim to a name. */
export const randomText = () => [...crypto.getRandomValues(new Uint8Array(22))].map(byte => LETTERS[byte & 63]).join('')
