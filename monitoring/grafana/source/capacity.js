// Capacity: is there room for more viewers, what runs out first, and what do the present ones cost?
import { bars, dashboard, lines, onTheRight, stat } from './panels.js'

const gateways = 'instance=~"$gateway"'

/** What each of the study's figures is read against. */
const load = [
  { expr: `sum(keycast_gateway_sessions{${gateways}})`, legend: 'viewers' },
  { expr: `sum(instance:keycast_gateway_sent_bytes:rate1m{${gateways}})`, legend: 'sent' },
]
const loadOnTheRight = [onTheRight('viewers', 'short'), onTheRight('sent', 'Bps')]

export const capacity = dashboard({
  uid: 'keycast-capacity',
  title: 'Keycast: capacity',
  description: 'Is there room for more viewers, and what runs out first?',
  variables: [{ name: 'gateway', label: 'Gateway', query: 'label_values(keycast_gateway_sessions, instance)' }],
  rows: [
    {
      title: 'Is there room?',
      height: 7,
      panels: [
        stat({
          title: 'Viewers now',
          description: 'Sessions on all gateways.',
          unit: 'short',
          width: 4,
          queries: [{ expr: 'keycast:sessions:sum' }],
        }),
        stat({
          title: 'Viewers left',
          description:
            'How many more viewers like the present ones fit, by the resource that runs out first. With few viewers it is a cautious guess: it gets better as they come.',
          unit: 'short',
          width: 4,
          decimals: 0,
          queries: [{ expr: 'keycast:viewers_left:min' }],
        }),
        stat({
          title: 'Room left',
          description: 'Viewers left as a share of all that fit. Below a quarter, add a gateway or a host.',
          unit: 'percentunit',
          width: 4,
          min: 0,
          max: 1,
          decimals: 0,
          steps: [{ color: 'red' }, { color: 'orange', from: 0.1 }, { color: 'green', from: 0.25 }],
          queries: [{ expr: 'keycast:viewers_left:min / (keycast:viewers_left:min + keycast:sessions:sum)' }],
        }),
        stat({
          title: 'Sent',
          description: 'Bytes written to viewers a second, all gateways, before TLS.',
          unit: 'Bps',
          width: 4,
          queries: [{ expr: 'keycast:sent_bytes:rate1m' }],
        }),
        bars({
          title: 'What runs out first',
          description:
            'Viewers left by resource, scarcest first. event loop, gateway memory and session limit: add gateways. host CPU and host memory: add a host.',
          unit: 'short',
          width: 8,
          decimals: 0,
          min: 0,
          queries: [{ expr: 'sort(keycast:viewers_left:estimate)', legend: '{{resource}}' }],
        }),
      ],
    },
    {
      title: "The study's four figures, against viewers and bytes sent",
      height: 8,
      perLine: 2,
      panels: [
        lines({
          title: 'Free memory',
          description: 'What each gateway can still take, within the limit of its container if it has one.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: `keycast_gateway_memory_available_bytes{${gateways}}`, legend: '{{instance}}' }, ...load],
          overrides: loadOnTheRight,
        }),
        lines({
          title: 'CPU time',
          description: 'CPU seconds a second. A gateway runs on one thread; the kernel and collections add to it.',
          unit: 'percentunit',
          min: 0,
          queries: [
            { expr: `instance:keycast_gateway_cpu_seconds:rate1m{${gateways}}`, legend: '{{instance}}' },
            ...load,
          ],
          overrides: loadOnTheRight,
        }),
        lines({
          title: 'V8 heap used',
          description: 'Values live outside the heap, in Buffers: a heap that grows with traffic is a leak.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: `keycast_gateway_v8_heap_used_bytes{${gateways}}`, legend: '{{instance}}' }, ...load],
          overrides: loadOnTheRight,
        }),
        lines({
          title: 'Full collections a minute',
          description:
            'Each stops the gateway for as long as it takes to walk the heap. More than ten a minute is too many.',
          unit: 'short',
          min: 0,
          steps: [{ color: 'green' }, { color: 'red', from: 10 }],
          queries: [
            { expr: `instance:keycast_gateway_full_gcs:increase1m{${gateways}}`, legend: '{{instance}}' },
            ...load,
          ],
          overrides: loadOnTheRight,
        }),
      ],
    },
    {
      title: 'Gateways',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Viewers left',
          description: 'By resource, all gateways together. The lowest line is the answer at the top.',
          unit: 'short',
          min: 0,
          queries: [{ expr: 'keycast:viewers_left:estimate', legend: '{{resource}}' }],
        }),
        lines({
          title: 'Event loop busy',
          description: 'The share of time a gateway works. Above 0.8 a reconnect storm finds no room.',
          unit: 'percentunit',
          min: 0,
          max: 1,
          steps: [{ color: 'green' }, { color: 'red', from: 0.8 }],
          queries: [
            {
              expr: `instance:keycast_gateway_event_loop_utilization:ratio_rate1m{${gateways}}`,
              legend: '{{instance}}',
            },
          ],
        }),
        lines({
          title: 'Event loop lag, 99th percentile',
          description: 'How late timers fire: what everything else waits at worst. A fan-out yields every 5 ms.',
          unit: 's',
          min: 0,
          steps: [{ color: 'green' }, { color: 'red', from: 0.1 }],
          queries: [
            {
              expr: `histogram_quantile(0.99, sum by (instance, le) (rate(keycast_gateway_event_loop_lag_seconds_bucket{${gateways}}[$__rate_interval])))`,
              legend: '{{instance}}',
            },
          ],
        }),
        lines({
          title: 'Viewers by gateway',
          description:
            'nginx gives new ones to the gateway with the fewest. After a restart nothing moves those who stay.',
          unit: 'short',
          min: 0,
          stacked: true,
          queries: [{ expr: `keycast_gateway_sessions{${gateways}}`, legend: '{{instance}}' }],
        }),
        lines({
          title: 'Memory of a gateway',
          description: 'Resident memory, and what of it are values held (bounded by GATEWAY_CACHE_BYTES_MAX).',
          unit: 'bytes',
          min: 0,
          queries: [
            { expr: `keycast_gateway_process_resident_memory_bytes{${gateways}}`, legend: '{{instance}} resident' },
            { expr: `keycast_gateway_cache_bytes{${gateways}}`, legend: '{{instance}} values' },
          ],
        }),
        lines({
          title: 'Sent',
          description: 'Bytes written to viewers a second, before TLS.',
          unit: 'Bps',
          min: 0,
          stacked: true,
          queries: [{ expr: `instance:keycast_gateway_sent_bytes:rate1m{${gateways}}`, legend: '{{instance}}' }],
        }),
      ],
    },
    {
      title: 'Fetchers and hosts',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Fetcher event loop busy',
          description: 'Every value passes the primary once per gateway. Above 0.8, add a fetcher node.',
          unit: 'percentunit',
          min: 0,
          max: 1,
          steps: [{ color: 'green' }, { color: 'red', from: 0.8 }],
          queries: [{ expr: 'instance:keycast_fetcher_event_loop_utilization:ratio_rate1m', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Fetcher CPU',
          description:
            'CPU seconds a second of a node with its workers, and how busy its workers are on average. Above 0.8, set FETCHER_WORKERS higher where there are CPUs, else add a node.',
          unit: 'percentunit',
          min: 0,
          queries: [
            { expr: 'instance:keycast_fetcher_cpu_seconds:rate1m', legend: '{{instance}} all' },
            { expr: 'instance:keycast_fetcher_workers_busy:ratio_rate1m', legend: '{{instance}} workers' },
          ],
        }),
        lines({
          title: 'Fetcher full collections a minute',
          description: 'As for gateways: more than ten a minute is too many.',
          unit: 'short',
          min: 0,
          steps: [{ color: 'green' }, { color: 'red', from: 10 }],
          queries: [{ expr: 'instance:keycast_fetcher_full_gcs:increase1m', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Host CPUs busy',
          description: 'All that runs on the host, nginx and its TLS included, against the CPUs it has.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: 'instance:node_cpu_busy:rate1m', legend: '{{instance}} busy' },
            { expr: 'instance:node_cpus:count', legend: '{{instance}} CPUs' },
          ],
        }),
        lines({
          title: 'Host memory available',
          description: 'What the host can still give without swapping.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: 'node_memory_MemAvailable_bytes', legend: '{{instance}}' }],
        }),
      ],
    },
  ],
})
