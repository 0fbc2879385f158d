// Says when nobody is left who could end npm start: its npm or its terminal is gone. npm passes SIGINT and SIGTERM on, but
// SIGHUP or SIGKILL ends npm alone. A shell whose terminal is closed does not always tell its background jobs.
import { isatty } from 'node:tty'

/** Read before anything else is loaded, so that a parent which ends meanwhile is noticed. */
const parent = process.ppid

/** Standard streams that were a terminal at the start. One that was closed is none any more. */
const terminals = [0, 1, 2].filter(fd => isatty(fd))

/** No event tells a process that its parent ended or, unless it reads, that its terminal did. A look costs two system calls. */
const LOOK_MS = 500

export function terminalIsGone() {
  return terminals.some(fd => !isatty(fd))
}

/** Without npm a parent may end as it likes: a script may leave npm start in the background. */
function npmIsGone() {
  return Boolean(process.env.npm_lifecycle_event) && process.ppid !== parent
}

export function watchOrphaned(orphaned: (why: string) => void) {
  const timer = setInterval(() => {
    const why = npmIsGone() ? 'npm ended' : terminalIsGone() ? 'the terminal was closed' : undefined
    if (why === undefined) return
    clearInterval(timer)
    orphaned(why)
  }, LOOK_MS)
}
