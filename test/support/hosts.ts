// Hosts of a network of their own, on this machine: each has an address and all ports, so that the commands of a page run as
// they are written. Needs root.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { atEnd } from './cleanup.ts'
import { within } from './deadline.ts'
import { root } from './pm2.ts'
import { childrenOf } from './processes.ts'

/** Commands start processes, which take their time on a busy machine. */
const COMMAND_MS = 90_000

/**
 * The folders that a command may write to are empty, in memory, and gone at the end: /srv, and in the repository those of
 * the proxy and of the journal.
 *
 * @param addresses of 10.0.0.0/24, but for 10.0.0.1, which is outside of all hosts
 */
function networkScript(addresses: string[]) {
  const hosts = addresses.map(address => {
    const name = nameOf(address)
    return `
ip netns add ${name}
ip link add v${name} type veth peer name eth0 netns ${name}
ip link set v${name} master br0 up
ip -n ${name} link set lo up
ip -n ${name} address add ${address}/24 dev eth0
ip -n ${name} link set eth0 up`
  })
  const folders = ['/srv', '/run', `${root}proxy/run`, `${root}.keycast`]
  return `set -eu
mount --make-rprivate /
mkdir -p ${folders.map(quoted).join(' ')}
for folder in ${folders.map(quoted).join(' ')}; do mount -t tmpfs tmpfs "$folder"; done
mkdir /run/netns
ip link set lo up
ip link add br0 type bridge
ip address add 10.0.0.1/24 dev br0
ip link set br0 up
${hosts.join('\n')}
echo ready
exec cat`
}

const nameOf = (address: string) => `host${address.split('.')[3]}`

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** @param env of every command, beside PATH and HOME */
export async function startHosts(addresses: string[], env: Record<string, string> = {}) {
  // Processes of its own, too: all of them end with the first, however they were started and whatever they call themselves.
  const own = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
  const holder = spawn('unshare', [...own, 'sh', '-c', networkScript(addresses)], { stdio: ['pipe', 'pipe', 'pipe'] })
  const said = collect(holder)
  atEnd(async () => {
    holder.stdin.end()
    await said.ended
  })
  await within(
    Promise.race([
      new Promise(resolve => createInterface(holder.stdout).once('line', resolve)),
      said.ended.then(() => Promise.reject(new Error(`no network of hosts: ${said.text()}`))),
    ]),
    'the network of hosts',
  )

  const [first] = childrenOf(holder.pid as number)

  /**
   * @param address of a host, or 10.0.0.1
   * @param command for a shell, in the repository's folder
   */
  function start(address: string, command: string) {
    const there = ['--target', String(first), '--mount', '--net', '--pid', `--wd=${root}`]
    const place = address === '10.0.0.1' ? [] : ['ip', 'netns', 'exec', nameOf(address)]
    // A home for each, and so a pm2 for each.
    const home = `/srv/home-${nameOf(address)}`
    return spawn('nsenter', [...there, ...place, 'sh', '-euc', `mkdir -p ${home}; ${command}`], {
      env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, HOME: home, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  return {
    start,
    /** @returns its output, once it has ended well */
    async run(address: string, command: string): Promise<string> {
      const { text, ended } = collect(start(address, command))
      const code = await within(ended, () => `the end of ${command}\n${text()}\n`, COMMAND_MS)
      if (code !== 0) throw new Error(`on ${address}, exit code ${code} of\n${command}\n${text()}`)
      return text()
    },
  }
}

function collect(child: ChildProcess): { text: () => string; ended: Promise<number> } {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', chunk => (text += chunk))
  // Not `close`: what pm2 leaves running has inherited the streams.
  return { text: () => text, ended: new Promise(resolve => child.once('exit', code => resolve(code ?? 1))) }
}
