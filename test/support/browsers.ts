// Chromium and Firefox as real processes, each by its own protocol: pages in tabs that are hidden, left, cut off and put
// to sleep as a person's are.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import WebSocket from 'ws'
import { findChromium, without } from './chromium.ts'
import { atEnd } from './cleanup.ts'
import { BROWSER_START_MS, eventually, within } from './deadline.ts'
import { childrenOf, killAtEnd, killNow, signalNow } from './processes.ts'

/** A busy machine's Firefox has taken half a minute to begin. */
const ANSWER_MS = 90_000

/**
 * Firefox draws the opening of each tab, keeps processes and a page ready for the next, and ends the process of each empty
 * page that a tab begins with: more than the tab itself costs.
 */
const FIREFOX_PREFERENCES = {
  'ui.prefersReducedMotion': 1,
  'dom.ipc.processPrelaunch.enabled': false,
  'dom.ipc.keepProcessesAlive.web': 4,
  'browser.newtab.preload': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'browser.sessionstore.interval': 3_600_000,
  'accessibility.force_disabled': 1,
}

export interface Tab {
  /** Its value, awaited; what JSON can carry. */
  evaluate: (expression: string) => Promise<any>
  /** A condition holds in the page. */
  until: (condition: string, what: string, deadlineMs?: number) => Promise<unknown>
  goto: (url: string) => Promise<void>
  /** To the page before. */
  back: () => Promise<void>
  /** As the browser tells its pages. */
  setOffline: (isOffline: boolean) => Promise<void>
  /** Puts the tab before all others, which are hidden then. */
  show: () => Promise<void>
  close: () => Promise<void>
}

export interface Browser {
  name: string
  /** Whether a page that was left with an open WebSocket is kept for the way back. */
  keepsConnected: boolean
  /** A tab, before all others, or behind them: a browser takes far less CPU time to open one that nobody sees. */
  open: (url: string, options?: { isBehind: boolean }) => Promise<Tab>
  /** Stops every process of it, as a laptop that is closed does. */
  sleep: () => void
  wake: () => void
  /** A hidden tab, as a browser does to save its power. */
  freeze?: (tab: Tab, isFrozen: boolean) => Promise<void>
}

/** @param options `hidesTabs`: whether its tabs hide each other, or are all seen, for less CPU time */
export async function startChromium(options?: { hidesTabs: boolean }): Promise<Browser> {
  const { profile, ...processes } = await launch(findChromium(options), /DevTools listening on (ws:\S+)/, profile => [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--disable-background-networking',
    '--no-first-run',
    without(),
    '--ignore-certificate-errors',
    '--remote-debugging-port=0',
    `--user-data-dir=${profile}`,
  ])
  const send = await connect(processes.address, (method, params, sessionId) => ({ method, params, sessionId }))
  const sessions = new Map<Tab, string>()

  return {
    name: 'Chromium',
    keepsConnected: true,
    ...processes,
    async open(url, { isBehind } = { isBehind: false }) {
      const { targetId } = await send('Target.createTarget', { url: 'about:blank', background: isBehind })
      const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
      const ask = (method: string, params = {}) => send(method, params, sessionId)
      await ask('Page.enable')
      await ask('Network.enable')
      const tab = createTab({
        async evaluate(expression) {
          const { result, exceptionDetails } = await ask('Runtime.evaluate', { expression, awaitPromise: true })
          if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
          return result.value
        },
        goto: url => ask('Page.navigate', { url }),
        async back() {
          const { entries, currentIndex } = await ask('Page.getNavigationHistory')
          await ask('Page.navigateToHistoryEntry', { entryId: entries[currentIndex - 1].id })
        },
        setOffline: offline =>
          ask('Network.emulateNetworkConditions', {
            offline,
            latency: 0,
            downloadThroughput: -1,
            uploadThroughput: -1,
          }),
        show: () => send('Target.activateTarget', { targetId }),
        close: () => send('Target.closeTarget', { targetId }),
      })
      sessions.set(tab, sessionId)
      await tab.goto(url)
      return tab
    },
    freeze: (tab, isFrozen) =>
      send('Page.setWebLifecycleState', { state: isFrozen ? 'frozen' : 'active' }, sessions.get(tab)),
  }
}

export async function startFirefox(): Promise<Browser> {
  const program = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find(existsSync)
  if (!program) throw new Error('this test needs Firefox: apt-get install firefox-esr')
  const { profile, ...processes } = await launch(program, /WebDriver BiDi listening on (ws:\S+)/, profile => {
    const preferences = Object.entries(FIREFOX_PREFERENCES).map(
      ([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`,
    )
    writeFileSync(join(profile, 'user.js'), preferences.join('\n'))
    return ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port=0', 'about:blank']
  })
  const send = await connect(`${processes.address}/session`, (method, params) => ({ method, params }))
  await send('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } })

  return {
    name: 'Firefox',
    keepsConnected: false,
    ...processes,
    async open(url, { isBehind } = { isBehind: false }) {
      const { context } = await send('browsingContext.create', { type: 'tab', background: isBehind })
      const tab = createTab({
        async evaluate(expression) {
          const answer = await send('script.evaluate', { expression, awaitPromise: true, target: { context } })
          if (answer.type !== 'success') throw new Error(answer.exceptionDetails.text)
          return answer.result.value
        },
        goto: url => send('browsingContext.navigate', { context, url, wait: 'complete' }),
        back: () => send('browsingContext.traverseHistory', { context, delta: -1 }),
        setOffline: isOffline =>
          send('emulation.setNetworkConditions', {
            contexts: [context],
            networkConditions: isOffline ? { type: 'offline' } : null,
          }),
        show: () => send('browsingContext.activate', { context }),
        close: () => send('browsingContext.close', { context }),
      })
      await tab.show()
      await tab.goto(url)
      return tab
    },
  }
}

/** @param actions `evaluate` gives text */
function createTab(actions: Omit<Tab, 'until'>): Tab {
  const tab = {
    ...actions,
    async evaluate(expression: string) {
      const text = await actions.evaluate(`Promise.resolve(${expression}).then(value => JSON.stringify(value ?? null))`)
      return JSON.parse(text)
    },
    until: (condition: string, what: string, deadlineMs?: number) =>
      // A page that is being loaded has nothing yet to be asked for.
      eventually(() => tab.evaluate(`Boolean(${condition})`).catch(() => false), what, { everyMs: 50, deadlineMs }),
  }
  return tab
}

/** @param says where it listens, in a line of its log */
async function launch(program: string, says: RegExp, argumentsOf: (profile: string) => string[]) {
  const profile = mkdtempSync(join(tmpdir(), 'keycast-browser-'))
  const child = spawn(program, argumentsOf(profile), {
    // The files that it keeps beside its profile must be gone with it, too.
    env: { PATH: process.env.PATH, HOME: profile },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(child, 'close')
  const all = () => familyOf(child.pid as number)
  atEnd(async () => {
    await ended
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  })
  killAtEnd(() => all().forEach(killNow))
  const lines: string[] = []
  const address = new Promise((resolve, reject) => {
    createInterface(child.stderr).on('line', line => {
      lines.push(line)
      const [, found] = says.exec(line) ?? []
      if (found) resolve(found)
    })
    ended.then(() => reject(new Error(`${program} ended:\n${lines.join('\n')}`)))
  })
  const signal = (name: NodeJS.Signals) => {
    for (const pid of all()) signalNow(pid, name)
  }
  return {
    profile,
    address: await within(address as Promise<string>, () => `${program} listening`, BROWSER_START_MS),
    sleep: () => signal('SIGSTOP'),
    wake: () => signal('SIGCONT'),
  }
}

/** @returns it, and all that it started */
function familyOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(familyOf)]
}

/** Both protocols are requests and answers in JSON. */
async function connect(
  address: string,
  write: (method: string, params: object, session?: string) => object,
): Promise<(method: string, params?: object, session?: string) => Promise<any>> {
  const socket = new WebSocket(address, { perMessageDeflate: false })
  atEnd(() => socket.terminate())
  await within(once(socket, 'open'), 'the browser being reached', BROWSER_START_MS)
  const waiting = new Map<number, (answer: any) => void>()
  let lastId = 0
  socket.on('message', bytes => {
    const answer = JSON.parse(bytes.toString())
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  return async (method, params = {}, session = undefined) => {
    const id = ++lastId
    const answered = new Promise<any>(resolve => waiting.set(id, resolve))
    socket.send(JSON.stringify({ id, ...write(method, params, session) }))
    const { result, error, message } = await within(answered, `the browser's answer to ${method}`, ANSWER_MS)
    if (error) throw new Error(`${method}: ${message ?? error.message ?? error}`)
    return result
  }
}
