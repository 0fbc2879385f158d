// What the person at the terminal sees: our own few lines, and those the services log, each led by its service's name.
import pretty from 'pino-pretty'

/** As many last lines of a service that fails are shown again. */
const LAST_LINES = 15

/** Held back while everything starts; a service that logs more by then has said the important first. */
const HELD_LINES_MAX = 1_000

/** One colour a service, so that the eye can follow one. */
const colours = [36, 35, 33, 32, 34, 31]

/**
 * @param {object} options
 * @param {(text: string) => void} options.write
 * @param {string[]} options.services their names, for the width and the colour
 * @param {'pretty' | 'json'} options.format
 * @param {boolean} options.colour
 */
export function createOutput({ write, services, format, colour }) {
  const render = pretty.prettyFactory({
    colorize: colour,
    ignore: 'pid,hostname,name',
    translateTime: 'SYS:HH:MM:ss.l',
    singleLine: true,
  })
  const width = Math.max(...services.map(name => name.length))
  /** The end of an unfinished line, by service and stream: pm2 hands over chunks as they come. @type {Map<string, string>} */
  const unfinished = new Map()
  /** @type {Map<string, string[]>} */
  const last = new Map(services.map(name => [name, []]))
  /** @type {string[] | undefined} */
  let held = []

  /** @param {string} service */
  const lead = service => {
    const name = service.padEnd(width)
    return colour ? `\u001b[${colours[services.indexOf(service) % colours.length]}m${name} |\u001b[39m` : `${name} |`
  }

  /** @param {string} service @param {string} line */
  const show = (service, line) => {
    // Led by its service, line by line, for an error's stack has many; but nothing is added to what a machine reads.
    const lines = format === 'json' ? [line] : readable(line).trimEnd().split('\n')
    for (const each of lines) {
      const shown = format === 'json' ? `${each}\n` : `${lead(service)} ${each}\n`
      keep(service, shown)
      if (!held) write(shown)
      else if (held.length < HELD_LINES_MAX) held.push(shown)
    }
  }

  /** @param {string} service @param {string} shown */
  const keep = (service, shown) => {
    const lines = /** @type {string[]} */ (last.get(service))
    lines.push(shown)
    if (lines.length > LAST_LINES) lines.shift()
  }

  /** @param {string} line */
  const readable = line => {
    try {
      return render(JSON.parse(line))
    } catch {
      return line
    }
  }

  return {
    /** A line of our own. @param {string} text */
    say: text => write(`${text}\n`),

    /**
     * A part of what a service writes.
     *
     * @param {string} service
     * @param {'out' | 'err'} stream
     * @param {string} chunk
     */
    took(service, stream, chunk) {
      if (!last.has(service)) return
      const source = `${service} ${stream}`
      const lines = `${unfinished.get(source) ?? ''}${chunk}`.split('\n')
      unfinished.set(source, /** @type {string} */ (lines.pop()))
      for (const line of lines) if (line !== '') show(service, line)
    },

    /** From now on lines are shown as they come; first those held back. */
    stream() {
      const lines = held ?? []
      held = undefined
      for (const line of lines) write(line)
    },

    /** @param {string} service */
    lastLines: service => last.get(service)?.join('') ?? '',
  }
}
