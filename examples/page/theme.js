// Light or dark: the system's choice until the reader makes one, which this browser then remembers.

const STORED = 'keycast-theme'

/** @param {HTMLElement} button */
export function startTheme(button) {
  const root = document.documentElement
  const storage = openStorage()
  const stored = storage?.getItem(STORED)
  if (stored) root.dataset.theme = stored
  button.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
    root.dataset.theme = dark ? 'light' : 'dark'
    storage?.setItem(STORED, root.dataset.theme)
  })
}

/** A browser told to keep nothing throws at the mere mention of its storage. */
function openStorage() {
  try {
    return localStorage
  } catch {
    return undefined
  }
}
