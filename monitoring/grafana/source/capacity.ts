// Capacity: is there room for more sessions, what runs out first, and what do the present ones cost?
import { bars, dashboard, lines, onTheRight, stat } from './panels.ts'

const gateways = 'instance=~"$gateway"'

/** The limit that each of the four figures is read against. */
const load = [
  { expr: `sum(keycast_gateway_sessions{${gateways}})`, legend: 'sessions' },
  { expr: `sum(instance:keycast_gateway_sent_bytes:rate1m{${gateways}})`, legend: 'sent' },
]
const loadOnTheRight = [onTheRight('sessions', 'short'), onTheRight('sent', 'Bps')]

export const capacity = dashboard({
  uid: 'keycast-capacity',
  title: 'Keycast: capacity',
  description: 'Is there room for more sessions, and what runs out first?',
  variables: [{ name: 'gateway', label: 'Gateway', query: 'label_values(keycast_gateway_sessions, instance)' }],
  rows: [
    {
      title: 'Capacity left',
      height: 7,
      panels: [
        stat({
          title: 'Sessions now',
          description: 'Connections of clients to all gateways, each of which is one session.',
          unit: 'short',
          width: 4,
          queries: [{ expr: 'keycast:sessions:sum' }],
        }),
        stat({
          title: 'Sessions left',
          description:
            'How many more sessions like the present ones fit, by the scarcest resource. With few sessions it is a cautious estimate, which improves as more come.',
          unit: 'short',
          width: 4,
          decimals: 0,
          queries: [{ expr: 'keycast:sessions_left:min' }],
        }),
        stat({
          title: 'Room left',
          description: 'Sessions left as a share of all that fit. Below 25 % add a gateway or a host.',
          unit: 'percentunit',
          width: 4,
          min: 0,
          max: 1,
          decimals: 0,
          steps: [{ color: 'red' }, { color: 'orange', from: 0.1 }, { color: 'green', from: 0.25 }],
          queries: [{ expr: 'keycast:sessions_left:min / (keycast:sessions_left:min + keycast:sessions:sum)' }],
        }),
        stat({
          title: 'Sent',
          description: 'Bytes per second written to sessions by all gateways, before TLS.',
          unit: 'Bps',
          width: 4,
          queries: [{ expr: 'keycast:sent_bytes:rate1m' }],
        }),
        bars({
          title: 'What runs out first',
          description:
            'Sessions left by resource, scarcest first. For event loop, gateway memory or session limit add gateways; for host CPU or host memory add a host.',
          unit: 'short',
          width: 8,
          decimals: 0,
          min: 0,
          queries: [{ expr: 'sort(keycast:sessions_left:estimate)', legend: '{{resource}}' }],
        }),
      ],
    },
    {
      title: 'The four figures of the first experiment, against sessions and bytes sent',
      height: 8,
      perLine: 2,
      panels: [
        lines({
          title: 'Free memory',
          description: 'Memory that each gateway can still allocate, within its container’s limit if it has one.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: `keycast_gateway_memory_available_bytes{${gateways}}`, legend: '{{instance}}' }, ...load],
          overrides: loadOnTheRight,
        }),
        lines({
          title: 'CPU time',
          description: 'CPU seconds per second. A gateway runs on one thread; kernel and garbage collection add to it.',
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
          description: 'Values are held in Buffers outside the heap. So a heap that grows with traffic is a leak.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: `keycast_gateway_v8_heap_used_bytes{${gateways}}`, legend: '{{instance}}' }, ...load],
          overrides: loadOnTheRight,
        }),
        lines({
          title: 'Full collections a minute',
          description: 'Each pauses the gateway while V8 walks the heap. More than ten a minute is too many.',
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
          title: 'Sessions left',
          description: 'By resource, all gateways together. The lowest line is the figure at the top.',
          unit: 'short',
          min: 0,
          queries: [{ expr: 'keycast:sessions_left:estimate', legend: '{{resource}}' }],
        }),
        lines({
          title: 'Event loop busy',
          description:
            'Share of time in which the event loop is busy. Above 0.8 nothing is left for a reconnect storm.',
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
          description: 'How late timers fire, and so how long messages wait at worst. A fan-out yields every 5 ms.',
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
          title: 'Sessions by gateway',
          description:
            'nginx sends new sessions to the gateway with the fewest. A restart moves only the sessions of that gateway, and they do not move back.',
          unit: 'short',
          min: 0,
          stacked: true,
          queries: [
            { expr: `keycast_gateway_sessions{${gateways}}`, legend: '{{instance}}' },
            { expr: `sum(keycast_gateway_streams{${gateways}})`, legend: 'of these event streams' },
          ],
        }),
        lines({
          title: 'Memory of a gateway',
          description: 'Resident memory, and the part of it that holds values (at most GATEWAY_CACHE_BYTES_MAX).',
          unit: 'bytes',
          min: 0,
          queries: [
            { expr: `keycast_gateway_process_resident_memory_bytes{${gateways}}`, legend: '{{instance}} resident' },
            { expr: `keycast_gateway_cache_bytes{${gateways}}`, legend: '{{instance}} values' },
            { expr: `keycast_gateway_cache_wanted_bytes{${gateways}}`, legend: '{{instance}} values watched' },
          ],
        }),
        lines({
          title: 'Sent',
          description: 'Bytes per second written to sessions, before TLS.',
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
          description: 'The primary sends every value once to each gateway. Above 0.8 add a fetcher node.',
          unit: 'percentunit',
          min: 0,
          max: 1,
          steps: [{ color: 'green' }, { color: 'red', from: 0.8 }],
          queries: [{ expr: 'instance:keycast_fetcher_event_loop_utilization:ratio_rate1m', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Fetcher CPU',
          description:
            'CPU seconds per second of a node with its workers, and the mean load of a worker. Above 0.8 raise FETCHER_WORKERS if there are free CPUs, else add a node.',
          unit: 'percentunit',
          min: 0,
          queries: [
            { expr: 'instance:keycast_fetcher_cpu_seconds:rate1m', legend: '{{instance}} all' },
            { expr: 'instance:keycast_fetcher_workers_busy:ratio_rate1m', legend: '{{instance}} workers' },
          ],
        }),
        lines({
          title: 'Fetcher full collections a minute',
          description: 'As for gateways, more than ten a minute is too many.',
          unit: 'short',
          min: 0,
          steps: [{ color: 'green' }, { color: 'red', from: 10 }],
          queries: [{ expr: 'instance:keycast_fetcher_full_gcs:increase1m', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Host CPUs busy',
          description: 'CPUs busy with any program, nginx and TLS included, and the number of CPUs.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: 'instance:node_cpu_busy:rate1m', legend: '{{instance}} busy' },
            { expr: 'instance:node_cpus:count', legend: '{{instance}} CPUs' },
          ],
        }),
        lines({
          title: 'Host memory available',
          description: 'Memory that the host can still allocate without swapping.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: 'node_memory_MemAvailable_bytes', legend: '{{instance}}' }],
        }),
      ],
    },
  ],
})
