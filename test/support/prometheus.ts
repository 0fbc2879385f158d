// A real Prometheus and a real node exporter, from the host's packages, on free ports.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { newFolder } from './cleanup.ts'
import { freePorts } from './free-ports.ts'
import { answersAt, startTool } from './tool.ts'

export const prometheusFolder = fileURLToPath(new URL('../../monitoring/prometheus/', import.meta.url))

/** Both programs collect garbage a fourth as often as Go would have them, which takes a quarter off their CPU time. */
export const env = { ...process.env, GOGC: '400' }

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>

interface Sample {
  labels: Record<string, string>
  value: number
}

/**
 * Runs the project's Prometheus configuration, with its rules, against targets given by address and in a hurry.
 *
 * @param config the text of prometheus.yml
 * @param targets host:port by job
 */
export async function startPrometheus(config: string, targets: Record<string, string[]>) {
  const folder = newFolder()
  const [port] = await freePorts(1)
  const { global, rule_files, scrape_configs } = parse(config)
  const hurried = {
    global: { ...global, scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: rule_files.map((path: string) => join(prometheusFolder, path)),
    scrape_configs: scrape_configs.map(({ job_name }: { job_name: string }) => ({
      job_name,
      static_configs: [{ targets: targets[job_name] ?? [`127.0.0.1:${port}`] }],
    })),
  }
  const path = join(folder, 'prometheus.yml')
  writeFileSync(path, stringify(hurried))
  const address = `127.0.0.1:${port}`
  const args = [`--config.file=${path}`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=${address}`]
  await startTool('prometheus', args, () => answersAt(`http://${address}/-/ready`), { env })

  const ask = async (path: string): Promise<any> => {
    const response = await fetch(`http://${address}/api/v1/${path}`)
    const { status, data, error } = (await response.json()) as any
    if (status !== 'success') throw new Error(`${path}: ${error}`)
    return data
  }
  return {
    /** @returns what it is now */
    async query(expression: string): Promise<Sample[]> {
      const { result } = await ask(`query?query=${encodeURIComponent(expression)}`)
      return result.map(({ metric, value }: any) => ({ labels: metric, value: Number(value[1]) }))
    },
    /** Of every metric it has ever seen. */
    names: (): Promise<string[]> => ask('label/__name__/values'),
    targets: async () => (await ask('targets')).activeTargets,
    /** Every rule, recording and alerting. */
    rules: async (): Promise<any[]> => (await ask('rules')).groups.flatMap(({ rules }: any) => rules),
  }
}

/** @returns its host:port */
export async function startNodeExporter(): Promise<string> {
  const [port] = await freePorts(1)
  const address = `127.0.0.1:${port}`
  await startTool('prometheus-node-exporter', [`--web.listen-address=${address}`], () =>
    answersAt(`http://${address}/`),
  )
  return address
}
