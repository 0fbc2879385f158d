/** The environment of Node processes that tests start; jest.config.js says what the cache is for. */
export const ofNode = Object.freeze({
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
})
