// A fetcher node. The primary knows what gateways want and hands out fetches; the workers it forks pull over HTTP.
import cluster from 'node:cluster'

if (cluster.isPrimary) await import('./primary/main.ts')
else (await import('./worker/main.ts')).runWorker()
