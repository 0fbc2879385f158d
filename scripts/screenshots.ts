#!/usr/bin/env node
// Takes the pictures of the documentation again: the page of a running system, and the report of a load test.
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Browser, chromium } from 'playwright-core'
import { isMain, runCommand } from '../cli/support/command.ts'

const folder = fileURLToPath(new URL('../docs/pictures/', import.meta.url))

const usage = `Usage: node scripts/screenshots.js [--url URL] [--report FILE]

Writes docs/pictures/page.png, the page of a running system with two keys; chat.png, chat-dark.png and chat-phone.png,
the chat; and report.png, the report of a load test. Needs Chromium.

  --url URL       where the page is served; http://127.0.0.1:8080/ unless said
  --report FILE   a report.html that npm run loadtest wrote; without it that picture stays

  npm start                                              # in another terminal
  npm run loadtest -- capacity --start --every 20ms      # prints where its report is
  node scripts/screenshots.js --report loadtest/results/…/report.html`

const KEYS = ['conversation:1', 'text:1']

/** The messages in the pictures of the chat. */
const TALK = [
  ['Zoë', 'Good morning! Has anybody seen the parcel for the board?'],
  ['Mei', 'It left the depot on Monday.'],
  ['Mei', 'The driver wanted to leave it with a neighbour.'],
  ['Ada', 'It is at the front desk since nine.\nI can bring it up.'],
  ['Zoë', 'That would be great, thank you.'],
  ['Óscar', 'Is the spare part of the new revision inside?'],
  ['Ada', 'The label says C, so yes.'],
]

if (isMain(import.meta.url)) {
  const options = { url: { type: 'string' }, report: { type: 'string' } } as const
  await runCommand({ name: 'screenshots', usage, options }, async ({ values }) => {
    const { url = 'http://127.0.0.1:8080/', report } = values
    if (report && !existsSync(report)) throw new Error(`there is no report ${report}`)
    const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
    if (!executablePath) throw new Error('no Chromium found: apt-get install chromium')
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
    try {
      await takePage(browser, url)
      await takeChat(browser, url)
      if (report) await takeReport(browser, report)
    } finally {
      await browser.close()
    }
  })
}

async function takePage(browser: Browser, url: string) {
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

async function takeChat(browser: Browser, url: string) {
  // A room of its own for each run: an earlier one's messages are not in the picture.
  const room = `parcel-${Date.now().toString(36)}`
  const wide = { viewport: { width: 1180, height: 720 } }
  const looks = {
    Zoë: { picture: 'chat.png', options: wide },
    Mei: { picture: 'chat-dark.png', options: { ...wide, colorScheme: 'dark' as const } },
    Ada: {
      picture: 'chat-phone.png',
      options: { viewport: { width: 390, height: 720 }, isMobile: true, hasTouch: true },
    },
    Óscar: { picture: undefined, options: wide },
  }
  const people = new Map()
  for (const [name, { options, picture }] of Object.entries(looks)) {
    const page = await browser.newPage(options)
    await page.goto(new URL(`/chat#${room}`, url).href)
    await page.getByLabel('Your name').fill(name)
    await page.getByRole('button', { name: 'Join' }).click()
    const field = page.getByRole('textbox', { name: 'Message' })
    await field.waitFor()
    people.set(name, { page, field, picture })
  }
  for (const [name, text] of TALK) {
    const { page, field } = people.get(name)
    await field.fill(text)
    await field.press('Enter')
    await page.locator('#messages li:not(.pending)').getByText(text).waitFor()
  }
  for (const { page, field, picture } of people.values()) {
    if (!picture) continue
    await page.getByText(TALK[TALK.length - 1][1]).waitFor()
    await page.getByText(/^revision \d+/).waitFor()
    await field.fill('See you at ten')
    await field.blur()
    // The mark of a change that has just come fades.
    await page.evaluate('Promise.all(document.getAnimations().map(({ finished }) => finished))')
    await page.screenshot({ path: `${folder}${picture}` })
    console.log(`${folder}${picture}`)
  }
}

async function takeReport(browser: Browser, report: string) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  await page.goto(pathToFileURL(resolve(report)).href)
  await page.screenshot({ path: `${folder}report.png` })
  console.log(`${folder}report.png`)
}
