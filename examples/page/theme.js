// Light or dark: the system's choice until the reader makes one, which this browser then remembers.
import { recall, remember } from './storage.js'

const STORED = 'keycast-theme'

/** @param {HTMLElement} button */
export function startTheme(button) {
  const root = document.documentElement
  const stored = recall(STORED)
  if (stored) root.dataset.theme = stored
  button.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
    root.dataset.theme = dark ? 'light' : 'dark'
    remember(STORED, root.dataset.theme)
  })
}
