// The registry of prom-client by its own path. The package's entry loads all of OpenTelemetry's interface, too, for metrics
// that nothing here uses: 90 files at every start.
import { createRequire } from 'node:module'
import type { Registry as Type } from 'prom-client'

export type Registry = Type
export const Registry: typeof Type = createRequire(import.meta.url)('prom-client/lib/registry')
