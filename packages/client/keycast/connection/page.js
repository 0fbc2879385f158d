// Notices when a page is hidden, is left, is seen again, loses the network or gets it back.

/**
 * Calls `onHide`, `onLeave` and `onOffline` when that happens, and `onWake` when a page that is seen has reason to look
 * after its connection. Several events may tell of one return.
 *
 * @param {Pick<import('../environment.js').Environment, 'document' | 'window'>} environment
 * @param {{ onHide: () => void, onLeave: () => void, onWake: () => void, onOffline: () => void }} listeners
 * @returns {() => void} ends the watch
 */
export function watchPage({ document, window }, { onHide, onLeave, onWake, onOffline }) {
  const look = () => (document?.visibilityState === 'hidden' ? onHide() : onWake())
  /** @type {[import('../environment.js').Events | undefined, string, () => void][]} */
  const watched = [
    [document, 'visibilitychange', look],
    [document, 'resume', look],
    [window, 'pagehide', onLeave],
    [window, 'pageshow', look],
    [window, 'online', look],
    [window, 'offline', onOffline],
  ]
  for (const [target, name, listener] of watched) target?.addEventListener(name, listener)
  look()
  return () => {
    for (const [target, name, listener] of watched) target?.removeEventListener(name, listener)
  }
}
