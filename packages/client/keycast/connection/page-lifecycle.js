// Notices when a page is hidden, is left, is seen again, loses the network or gets it back.

/**
 * Calls `rest` when the page is hidden, `leave` when it is left and `offline` when the network is lost; and `wake` when a
 * visible page should check its connection. One return may cause several events.
 *
 * @param {Pick<import('../environment.js').Environment, 'document' | 'window'>} environment
 * @param {{ rest: () => void, leave: () => void, wake: () => void, offline: () => void }} listeners
 * @returns {() => void} ends the watch
 */
export function watchPage({ document, window }, { rest, leave, wake, offline }) {
  const look = () => (document?.visibilityState === 'hidden' ? rest() : wake())
  /** @type {[import('../environment.js').Events | undefined, string, () => void][]} */
  const watched = [
    [document, 'visibilitychange', look],
    [document, 'resume', look],
    [window, 'pagehide', leave],
    [window, 'pageshow', look],
    [window, 'online', look],
    [window, 'offline', offline],
  ]
  for (const [target, name, listener] of watched) target?.addEventListener(name, listener)
  look()
  return () => {
    for (const [target, name, listener] of watched) target?.removeEventListener(name, listener)
  }
}
