// Finds the verb, and leaves the rest of the words to it. Only what that verb needs is loaded: an image has the parts of
// one service.
interface Verb {
  run: (args: string[]) => Promise<never>
}

const verbs: Record<string, { about: string; load: () => Promise<Verb> }> = {
  token: { about: 'makes a token for trying', load: () => import('./token.ts') },
  check: { about: 'says before a rollout what services would refuse', load: () => import('./check.ts') },
  key: { about: 'says why a key is stale, or has it refreshed', load: () => import('./key.ts') },
  explain: { about: 'says who may use a key, and which rules say so', load: () => import('./explain.ts') },
  journal: { about: "backs up, restores, checks and shows the journal's log", load: () => import('./journal.ts') },
  secrets: { about: 'makes the secrets of a deployment', load: () => import('./secrets.ts') },
  smoke: { about: 'checks a running system as a client sees it', load: () => import('./smoke.ts') },
  proxy: { about: 'runs nginx with TLS in front of gateways on this host', load: () => import('./proxy.ts') },
  'compose-check': {
    about: 'kills and restarts parts of a compose stack that is not in use, and checks the rest',
    load: () => import('./compose-check.ts'),
  },
}

/** They are the client library's own command, which the library brings alone, too. */
const clientVerbs = {
  watch: 'prints values, or the messages of rooms, and every change',
  get: 'prints values once',
  publish: 'publishes into a room',
  history: 'prints the newest messages of a room',
  members: 'prints who is in a room',
}

const line = ([name, about]: [string, string]) => `  ${name.padEnd(15)}${about}`

const usage = `Usage: keycast VERB [options]

For operators:

${Object.entries(verbs)
  .map(([name, { about }]) => line([name, about]))
  .join('\n')}

As a client:

${Object.entries(clientVerbs).map(line).join('\n')}

keycast VERB --help says more about each.`

const [name = '', ...args] = process.argv.slice(2)
if (Object.hasOwn(clientVerbs, name)) {
  await import('../packages/client/bin/keycast.js')
} else if (Object.hasOwn(verbs, name)) {
  const verb = await verbs[name].load().catch(refuseMissing)
  await verb.run(args)
} else if (['--help', '-h'].includes(name)) {
  console.log(usage)
} else {
  console.error(`keycast: ${name ? `there is no verb "${name}"` : 'give a verb'}; --help lists them`)
  process.exitCode = 2
}

/** In an image most verbs lack the service that they are about. */
function refuseMissing(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  console.error(`keycast ${name}: ${error.message}. In an image only the verbs of its own service are complete`)
  process.exit(2)
}
