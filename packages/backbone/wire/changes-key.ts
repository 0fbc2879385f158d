// A backend's stream of changes, watched like a key, so that one node holds it. No client can name it: keys have no control
// characters.

/** @param url of the stream */
export const changesKey = (url: string) => `\0changes ${url}`
