// Delivery: do viewers see changes in time, and who does not?
import { dashboard, lines, stat } from './panels.ts'

const gateways = 'instance=~"$gateway"'

/** @param histogram without _bucket */
const quantileOf = (quantile: number, histogram: string, by: string) =>
  `histogram_quantile(${quantile}, sum by (${by}, le) (rate(${histogram}_bucket{${gateways}}[$__rate_interval])))`

/** @param name of the counter */
const rateBy = (name: string, by: string) => `sum by (${by}) (rate(${name}{${gateways}}[$__rate_interval]))`

/** @param name of the counter */
const rateOf = (name: string, labels = '') => `sum(rate(${name}{${labels}}[$__rate_interval]))`

/** The average of a histogram's observations: unlike quantiles, averages add up. */
const meanOf = (histogram: string, labels?: string) =>
  `${rateOf(`${histogram}_sum`, labels)} / (${rateOf(`${histogram}_count`, labels)} > 0)`

const quantiles = [0.5, 0.99]

export const delivery = dashboard({
  uid: 'keycast-delivery',
  title: 'Keycast: delivery',
  description: 'Do viewers see changes in time, and which sessions do not?',
  variables: [{ name: 'gateway', label: 'Gateway', query: 'label_values(keycast_gateway_sessions, instance)' }],
  rows: [
    {
      title: 'Delivery health',
      height: 5,
      panels: [
        stat({
          title: 'Age of a change when written, 99th percentile',
          description:
            'From the request to the backend to the end of the fan-out, for values that changed. The interval between two requests (refresh in keycast.yaml) comes on top.',
          unit: 's',
          decimals: 2,
          width: 6,
          steps: [{ color: 'green' }, { color: 'orange', from: 0.5 }, { color: 'red', from: 1 }],
          queries: [{ expr: 'keycast:value_age_seconds:p99_rate1m' }],
        }),
        stat({
          title: 'Stale notices',
          description:
            'Notices per second that a value is older than it should be. If above zero, look at the Backend dashboard.',
          unit: 'cps',
          width: 4,
          steps: [{ color: 'green' }, { color: 'red', from: 0.01 }],
          queries: [{ expr: 'sum(rate(keycast_gateway_messages_sent_total{type="stale"}[1m]))' }],
        }),
        stat({
          title: 'Errors',
          description: 'Error messages to viewers per second. The panel below splits them by code.',
          unit: 'cps',
          width: 4,
          steps: [{ color: 'green' }, { color: 'orange', from: 0.1 }, { color: 'red', from: 10 }],
          queries: [{ expr: 'sum(rate(keycast_gateway_messages_sent_total{type="error"}[1m]))' }],
        }),
        stat({
          title: 'Slow sessions now',
          description:
            'Slow clients: their connections take less than is sent. They get the latest state as soon as they can take it, and delay no other session.',
          unit: 'short',
          width: 5,
          queries: [{ expr: 'sum(keycast_gateway_sessions_stalled)' }],
        }),
        stat({
          title: 'Fetcher nodes heard',
          description: 'At the gateway that hears the fewest. At zero its viewers get no changes.',
          unit: 'short',
          width: 5,
          steps: [{ color: 'red' }, { color: 'green', from: 1 }],
          queries: [{ expr: 'min(keycast_gateway_fetcher_nodes_alive)' }],
        }),
      ],
    },
    {
      title: 'Where the time goes, and what goes wrong',
      height: 9,
      panels: [
        lines({
          title: 'Staleness at the viewer, by hop',
          description:
            'Mean time of a change from its refresh being due until a viewer’s socket has taken it. Not included: the time since the backend changed (up to refresh in keycast.yaml), the network, and messages that wait for a busy gateway (its event loop lag).',
          unit: 's',
          min: 0,
          stacked: true,
          width: 14,
          queries: [
            { expr: meanOf('keycast_fetcher_fetch_wait_seconds', 'lane="refresh"'), legend: '1. waiting for a worker' },
            { expr: meanOf('keycast_fetcher_fetch_seconds', 'outcome="value"'), legend: '2. backend and worker' },
            { expr: meanOf('keycast_fetcher_relay_seconds'), legend: '3. waiting for the gateway' },
            { expr: meanOf('keycast_gateway_delivery_seconds', gateways), legend: '4. to the session' },
            {
              // A stall's time, divided by the changes written meanwhile: so it adds to the average of one change.
              expr: `${rateOf('keycast_gateway_stall_seconds_sum', gateways)} / (${rateOf('keycast_gateway_delivery_seconds_count', gateways)} > 0)`,
              legend: '5. until taken',
            },
          ],
        }),
        lines({
          title: 'Errors, by code',
          description:
            'Messages error and stale to viewers. The table of codes in docs/protocol.md explains each. For backend_… and too_large look at the Backend dashboard.',
          unit: 'cps',
          min: 0,
          width: 10,
          queries: [{ expr: `${rateBy('keycast_gateway_errors_total', 'code')} > 0`, legend: '{{code}}' }],
        }),
      ],
    },
    {
      title: 'Staleness, hop by hop',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: '1. Waiting for a worker',
          description: 'From the time a refresh is due to handing it to a worker, all fetcher nodes.',
          unit: 's',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: `histogram_quantile(${quantile}, sum by (le) (rate(keycast_fetcher_fetch_wait_seconds_bucket{lane="refresh"}[$__rate_interval])))`,
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: '2. Backend and worker',
          description: 'From there until the new content is back at the primary, for values that changed.',
          unit: 's',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: `histogram_quantile(${quantile}, sum by (le) (rate(keycast_fetcher_fetch_seconds_bucket{outcome="value"}[$__rate_interval])))`,
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: '3. Waiting for the gateway',
          description:
            'From there until it is sent to each gateway. It grows when a gateway does not keep up: look at its event loop.',
          unit: 's',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: `histogram_quantile(${quantile}, sum by (le) (rate(keycast_fetcher_relay_seconds_bucket[$__rate_interval])))`,
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: '4. To the session',
          description:
            'From a change arriving at a gateway until it is written to each session. A slow session is written to once it has taken what was written before.',
          unit: 's',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: quantileOf(quantile, 'keycast_gateway_delivery_seconds', 'instance'),
            legend: `{{instance}} p${quantile * 100}`,
          })),
        }),
        lines({
          title: '4. To the last session, without slow ones',
          description: 'The gateway’s own time for a whole fan-out. It grows with the sessions that watch a key.',
          unit: 's',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: quantileOf(quantile, 'keycast_gateway_fanout_seconds', 'instance'),
            legend: `{{instance}} p${quantile * 100}`,
          })),
        }),
        lines({
          title: '5. Until taken, by slow sessions',
          description:
            'Time that slow sessions needed to take what was written. Past GATEWAY_STALL_MS_MAX they are closed.',
          unit: 's',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: quantileOf(quantile, 'keycast_gateway_stall_seconds', 'instance'),
            legend: `{{instance}} p${quantile * 100}`,
          })),
        }),
      ],
    },
    {
      title: 'Messages',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Messages sent',
          description: 'By type. value carries content; current says that the viewer holds the latest version.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_gateway_messages_sent_total', 'type'), legend: '{{type}}' }],
        }),
        lines({
          title: 'Messages received',
          description: 'By type. Malformed messages and those over a limit count as errors.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_gateway_messages_received_total', 'type'), legend: '{{type}}' }],
        }),
        lines({
          title: 'Conflated',
          description: 'Conflation: values that were not sent because a newer one of the same key replaced them.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_gateway_conflated_total', 'instance'), legend: '{{instance}}' }],
        }),
      ],
    },
    {
      title: 'Sessions',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Slow sessions',
          description:
            'Sessions that do not take what was written to them. After GATEWAY_STALL_MS_MAX without progress they are closed.',
          unit: 'short',
          min: 0,
          stacked: true,
          queries: [{ expr: `keycast_gateway_sessions_stalled{${gateways}}`, legend: '{{instance}}' }],
        }),
        lines({
          title: 'Sessions ended',
          description:
            'By reason. client: disconnected normally. lost: the connection broke. slow, abusive: closed by the gateway. restarting: sent to another gateway.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_gateway_sessions_closed_total', 'reason'), legend: '{{reason}}' }],
        }),
        lines({
          title: 'Connections refused',
          description:
            'By reason. Connections that nginx refuses for its limits are in its access log, with status 429.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_gateway_upgrades_refused_total', 'reason'), legend: '{{reason}}' }],
        }),
      ],
    },
    {
      title: 'Nodes',
      height: 8,
      perLine: 2,
      panels: [
        lines({
          title: 'Fetcher nodes with keys',
          description: 'As each gateway hears them. Gateways that differ for long place keys on different nodes.',
          unit: 'short',
          min: 0,
          queries: [{ expr: `keycast_gateway_fetcher_nodes_alive{${gateways}}`, legend: '{{instance}}' }],
        }),
        lines({
          title: 'Nodes held down',
          description:
            'Fetcher nodes and journals that answer and get no keys yet, since they were lost before: longer after each loss. Above zero again and again a node comes and goes.',
          unit: 'short',
          min: 0,
          queries: [{ expr: `keycast_gateway_nodes_held{${gateways}}`, legend: '{{instance}}' }],
        }),
      ],
    },
  ],
})
