// Starts Debian's Chromium for tests that look at a page through Playwright; browsers.ts starts browsers without it.
import { existsSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { atEnd } from './cleanup.ts'
import { BROWSER_START_MS, DEADLINE_MS } from './deadline.ts'

/**
 * Chromium, or its shell without windows where there is one: that takes a third of the CPU time, and hides no tab behind
 * another.
 *
 * @throws where there is none: a test of a page that no browser opened proves nothing
 */
export function findChromium({ hidesTabs = false } = {}): string {
  const shell = hidesTabs ? [] : ['chromium-headless-shell']
  const names = [...shell, 'chromium', 'chromium-browser', 'google-chrome']
  const program = names.map(name => `/usr/bin/${name}`).find(existsSync)
  if (!program) throw new Error('this test needs Chromium: apt-get install chromium')
  return program
}

/**
 * Each window of Chromium loads these beside its pages: two pages for its address bar, and a process for the next page.
 * They take more CPU time than the page that a test looks at.
 */
const spared = ['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'SpareRendererForSitePerProcess']

/** What Playwright has Chromium do without: of two such switches, Chromium reads the last. */
const sparedByPlaywright = [
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay',
  'MediaRouter',
  'PaintHolding',
  'ThirdPartyStoragePartitioning',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'OptimizationHints',
  'NetworkTimeServiceQuerying',
  'AimEnabled',
  'PreconnectToSearch',
]

export const without = (features: string[] = spared) => `--disable-features=${features.join()}`

/** @returns closed at the end of the tests. An event on its pages may take as long as any other. */
export async function launchChromium(): Promise<Browser> {
  // Not above: its package takes longer to load than most of what only asks for the program.
  const { chromium } = await import('playwright-core')
  const browser = await chromium.launch({
    executablePath: findChromium(),
    timeout: BROWSER_START_MS,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      without([...spared, ...sparedByPlaywright]),
    ],
  })
  atEnd(() => browser.close())
  const newContext = browser.newContext.bind(browser)
  browser.newContext = async options => {
    const context = await newContext(options)
    context.setDefaultTimeout(DEADLINE_MS)
    return context
  }
  browser.newPage = async options => (await browser.newContext(options)).newPage()
  return browser
}
