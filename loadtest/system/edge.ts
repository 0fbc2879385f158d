// The cache of docs/deploy/cdn.md between viewers and gateways: its configuration, read from the page.
import { readFileSync } from 'node:fs'

const page = new URL('../../docs/deploy/cdn.md', import.meta.url)

/**
 * A whole configuration for nginx in the foreground, which says on stderr that it is ready.
 *
 * @param folder for what it keeps
 * @param gateways their ports on loopback
 */
export function edgeConfig({ folder, port, gateways }: { folder: string; port: number; gateways: number[] }): string {
  const [cache, location] = [...readFileSync(page, 'utf8').matchAll(/```nginx\n(.*?)```/gs)].map(([, text]) =>
    text.replace('/var/cache/nginx', folder),
  )
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/${name};`,
  )
  return `daemon off; pid ${folder}/nginx.pid; error_log stderr notice; worker_processes 2;
    events { worker_connections 19900; }
    http {
      access_log off; ${temporary.join(' ')}
      ${cache}
      upstream keycast { ${gateways.map(each => `server 127.0.0.1:${each};`).join(' ')} }
      server { listen 127.0.0.1:${port} backlog=4096; ${location} }
    }`
}
