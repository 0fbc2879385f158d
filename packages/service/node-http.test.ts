import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const services = fileURLToPath(new URL('../../services/', import.meta.url))
const says = `process.on('exit', () => console.log(JSON.stringify(process.moduleLoadList)))`

test.each(['gateway', 'fetcher', 'journal', 'data-provider'])("the %s starts without Node's fetch", name => {
  const out = execFileSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(says)}`, `${services}${name}/main.js`, '--help'],
    { encoding: 'utf8' },
  )
  const loaded: string[] = JSON.parse(out.trim().split('\n').at(-1) as string)
  expect(loaded).toContain('NativeModule _http_server')
  expect(loaded.filter(module => module.includes('undici'))).toEqual([])
})
