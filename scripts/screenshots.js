#!/usr/bin/env node
// Takes the pictures of the documentation again: the page of a running system, and the report of a load test.
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { isMain, runCommand } from './support/command.js'

const folder = fileURLToPath(new URL('../docs/pictures/', import.meta.url))

const usage = `Usage: node scripts/screenshots.js [--url URL] [--report FILE]

Writes docs/pictures/page.png, the page of a running system with two keys, and docs/pictures/report.png, the report of a
load test. Needs Chromium.

  --url URL       where the page is served; http://127.0.0.1:8080/ unless said
  --report FILE   a report.html that npm run loadtest wrote; without it only the page is taken

  npm start                                              # in another terminal
  npm run loadtest -- capacity --start --every 20ms      # prints where its report is
  node scripts/screenshots.js --report loadtest/results/…/report.html`

const KEYS = ['conversation:1', 'text:1']

if (isMain(import.meta.url)) {
  const options = /** @type {const} */ ({ url: { type: 'string' }, report: { type: 'string' } })
  await runCommand({ name: 'screenshots', usage, options }, async ({ values }) => {
    const { url = 'http://127.0.0.1:8080/', report } = values
    if (report && !existsSync(report)) throw new Error(`there is no report ${report}`)
    const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
    if (!executablePath) throw new Error('no Chromium found: apt-get install chromium')
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
    try {
      await takePage(browser, url)
      if (report) await takeReport(browser, report)
    } finally {
      await browser.close()
    }
  })
}

/** @param {import('playwright-core').Browser} browser @param {string} url */
async function takePage(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(new URL(`#${KEYS.join(',')}`, url).href)
  for (const key of KEYS) await page.getByRole('article', { name: new RegExp(key) }).waitFor()
  // The simulated backend changes each conversation within seconds: a picture of a change says more than one of a load.
  for (const key of KEYS)
    await page
      .getByRole('article', { name: new RegExp(key) })
      .getByText(/[1-9] change/)
      .waitFor()
  await page.screenshot({ path: `${folder}page.png` })
  console.log(`${folder}page.png`)
}

/** @param {import('playwright-core').Browser} browser @param {string} report */
async function takeReport(browser, report) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  await page.goto(pathToFileURL(resolve(report)).href)
  await page.screenshot({ path: `${folder}report.png` })
  console.log(`${folder}report.png`)
}
