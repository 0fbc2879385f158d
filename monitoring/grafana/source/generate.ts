// Writes the dashboards Grafana reads: node monitoring/grafana/source/generate.js
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { backend } from './backend.ts'
import { capacity } from './capacity.ts'
import { delivery } from './delivery.ts'
import { rooms } from './rooms.ts'

const folder = new URL('../dashboards/', import.meta.url)

for (const [name, dashboard] of Object.entries({ backend, capacity, delivery, rooms })) {
  writeFileSync(new URL(`${name}.json`, folder), JSON.stringify(dashboard))
}
execFileSync('npx', ['biome', 'format', '--write', fileURLToPath(folder)], {
  cwd: fileURLToPath(new URL('../../../', import.meta.url)),
  stdio: 'inherit',
})
