// Writes to the terminal: a few lines of npm start, and the services' log lines, each led by the service's name.
import pretty from 'pino-pretty'

/** So many last lines of a service that failed are shown again. */
const LAST_LINES = 15

/** Log lines are held back while the system starts. Beyond this many the rest is dropped, to bound memory. */
const HELD_LINES_MAX = 1_000

/** A colour for each service. */
const colours = [36, 35, 33, 32, 34, 31]

interface Options {
  write: (text: string) => void
  /** Their names, for the width and the colour. */
  services: string[]
  format: 'pretty' | 'json'
  colour: boolean
}

export function createOutput({ write, services, format, colour }: Options) {
  const render = pretty.prettyFactory({
    colorize: colour,
    ignore: 'pid,hostname,name',
    translateTime: 'SYS:HH:MM:ss.l',
    singleLine: true,
  })
  const width = Math.max(...services.map(name => name.length))
  /** The unfinished last line, by service and stream: pm2 hands over chunks, not lines. */
  const unfinished = new Map<string, string>()
  const last = new Map<string, string[]>(services.map(name => [name, []]))
  let held: string[] | undefined = []

  const lead = (service: string) => {
    const name = service.padEnd(width)
    return colour ? `\u001b[${colours[services.indexOf(service) % colours.length]}m${name} |\u001b[39m` : `${name} |`
  }

  const show = (service: string, line: string) => {
    // An error's stack has many lines, each led by the service. JSON is for a machine: nothing is added.
    const lines = format === 'json' ? [line] : readable(line).trimEnd().split('\n')
    for (const each of lines) {
      const shown = format === 'json' ? `${each}\n` : `${lead(service)} ${each}\n`
      keep(service, shown)
      if (!held) write(shown)
      else if (held.length < HELD_LINES_MAX) held.push(shown)
    }
  }

  const keep = (service: string, shown: string) => {
    const lines = last.get(service) as string[]
    lines.push(shown)
    if (lines.length > LAST_LINES) lines.shift()
  }

  const readable = (line: string) => {
    try {
      return render(JSON.parse(line))
    } catch {
      return line
    }
  }

  return {
    /** A line of npm start itself. */
    say: (text: string) => write(`${text}\n`),

    /** Takes a chunk that a service wrote. */
    take(service: string, stream: 'out' | 'err', chunk: string) {
      if (!last.has(service)) return
      const source = `${service} ${stream}`
      const lines = `${unfinished.get(source) ?? ''}${chunk}`.split('\n')
      unfinished.set(source, lines.pop() as string)
      for (const line of lines) if (line !== '') show(service, line)
    },

    /** Shows the lines held back, and from now on each line at once. */
    stream() {
      const lines = held ?? []
      held = undefined
      for (const line of lines) write(line)
    },

    lastLines: (service: string) => last.get(service)?.join('') ?? '',
  }
}
