// Starts Debian's Chromium for tests that look at a page through Playwright; browsers.ts starts browsers without it.
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { atEnd } from './cleanup.ts'

/** @throws where there is none: a test of a page that no browser opened proves nothing */
export function findChromium(): string {
  const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
  if (!program) throw new Error('this test needs Chromium: apt-get install chromium')
  return program
}

/** @returns closed at the end of the tests */
export async function launchChromium(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: findChromium(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  })
  atEnd(() => browser.close())
  return browser
}
