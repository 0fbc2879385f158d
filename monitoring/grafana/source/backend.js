// Backend: what is it spared, how does it answer, and what waits for it?
import { dashboard, lines, stat } from './panels.js'

const nodes = 'instance=~"$fetcher"'

/** @param {number} quantile @param {string} histogram without _bucket @param {string} by */
const quantileOf = (quantile, histogram, by) =>
  `histogram_quantile(${quantile}, sum by (${by}, le) (rate(${histogram}_bucket{${nodes}}[$__rate_interval])))`

export const backend = dashboard({
  uid: 'keycast-backend',
  title: 'Keycast: backend',
  description: 'What is the backend spared, how does it answer, and what waits for it?',
  variables: [{ name: 'fetcher', label: 'Fetcher node', query: 'label_values(keycast_fetcher_workers, instance)' }],
  rows: [
    {
      title: 'Is the backend well?',
      height: 5,
      perLine: 6,
      panels: [
        stat({
          title: 'Requests saved',
          description:
            'Of the requests the backend would get if each viewer polled as often as the fetcher does, the share it does not get.',
          unit: 'percentunit',
          decimals: 1,
          min: 0,
          max: 1,
          queries: [{ expr: '1 - sum(keycast:backend_requests:rate1m) / keycast:backend_requests_without:rate1m' }],
        }),
        stat({
          title: 'Requests',
          description: 'What the backend is asked a second, whatever the number of viewers.',
          unit: 'reqps',
          queries: [{ expr: 'sum(keycast:backend_requests:rate1m)' }],
        }),
        stat({
          title: 'Failures',
          description:
            'The share of requests that fail: timeouts, 5xx, 429, refusals, content that is not what it says.',
          unit: 'percentunit',
          decimals: 1,
          min: 0,
          max: 1,
          steps: [{ color: 'green' }, { color: 'orange', from: 0.01 }, { color: 'red', from: 0.1 }],
          queries: [{ expr: 'keycast:backend_failures:ratio_rate1m' }],
        }),
        stat({
          title: 'Backends given a rest',
          description:
            'Breakers open: half of the last 20 or more requests failed. Probed each second; nothing to do here but there.',
          unit: 'short',
          steps: [{ color: 'green' }, { color: 'red', from: 1 }],
          queries: [{ expr: 'sum(keycast_fetcher_breaker_open)' }],
        }),
        stat({
          title: 'Keys failing',
          description: 'Watched keys whose last try failed: their viewers hold what came before, and know it.',
          unit: 'short',
          steps: [{ color: 'green' }, { color: 'orange', from: 1 }, { color: 'red', from: 100 }],
          queries: [{ expr: 'sum(keycast_fetcher_failing_keys)' }],
        }),
        stat({
          title: 'New keys waiting',
          description: 'Keys nobody watched before, not yet asked of the backend.',
          unit: 'short',
          steps: [{ color: 'green' }, { color: 'orange', from: 256 }, { color: 'red', from: 2560 }],
          queries: [{ expr: 'sum(keycast_fetcher_fetches_waiting{lane="cold"})' }],
        }),
      ],
    },
    {
      title: 'What it is spared',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Requests, and what they would be',
          description:
            'The distance between the lines is what Keycast is for. The lower one follows keys and freshness alone.',
          unit: 'reqps',
          min: 0,
          queries: [
            { expr: 'sum(keycast:backend_requests:rate1m)', legend: 'asked' },
            { expr: 'keycast:backend_requests_without:rate1m', legend: 'if viewers polled' },
          ],
        }),
        lines({
          title: 'Answered from memory',
          description:
            'The share of gets, subscriptions and polls over HTTP that a gateway answers at once with what it holds.',
          unit: 'percentunit',
          min: 0,
          max: 1,
          queries: [
            {
              expr: 'sum by (request) (rate(keycast_gateway_lookups_total{result="hit"}[$__rate_interval])) / (sum by (request) (rate(keycast_gateway_lookups_total[$__rate_interval])) > 0)',
              legend: '{{request}}',
            },
          ],
        }),
        lines({
          title: 'Not modified',
          description:
            '304: the backend says so, at the cost of a header. unchanged: it sends the same bytes again, and could save them by honouring If-None-Match.',
          unit: 'percentunit',
          min: 0,
          max: 1,
          queries: [
            {
              expr: 'sum(keycast:backend_requests:rate1m{outcome="not_modified"}) / (sum(keycast:backend_requests:rate1m) > 0)',
              legend: '304',
            },
            {
              expr: 'sum(keycast:backend_requests:rate1m{outcome="unchanged"}) / (sum(keycast:backend_requests:rate1m) > 0)',
              legend: 'unchanged',
            },
          ],
        }),
      ],
    },
    {
      title: 'How it answers',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Outcomes',
          description:
            'value: new content. not_modified: 304. unchanged: the same bytes again. not_found: 404 or 410. All others are failures, by error code.',
          unit: 'reqps',
          min: 0,
          stacked: true,
          queries: [
            {
              expr: `sum by (outcome) (rate(keycast_fetcher_fetch_seconds_count{${nodes}}[$__rate_interval]))`,
              legend: '{{outcome}}',
            },
          ],
        }),
        lines({
          title: 'Time to an outcome',
          description:
            'The backend and the worker, from the request being handed out. It ends at the namespace’s timeout.',
          unit: 's',
          min: 0,
          queries: [0.5, 0.9, 0.99].map(quantile => ({
            expr: quantileOf(quantile, 'keycast_fetcher_fetch_seconds', 'job'),
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'New bytes',
          description: 'Content that changed, a second. Each gateway that watches gets a copy.',
          unit: 'Bps',
          min: 0,
          queries: [
            {
              expr: `sum by (instance) (rate(keycast_fetcher_fetched_bytes_total{${nodes}}[$__rate_interval]))`,
              legend: '{{instance}}',
            },
          ],
        }),
        lines({
          title: 'Breaker',
          description: '1 while a backend is given a rest after too many failures.',
          unit: 'short',
          min: 0,
          max: 1,
          steps: [{ color: 'green' }, { color: 'red', from: 1 }],
          queries: [{ expr: `keycast_fetcher_breaker_open{${nodes}}`, legend: '{{origin}} at {{instance}}' }],
        }),
        lines({
          title: 'Keys failing',
          description: 'Watched keys whose last try failed, by backend.',
          unit: 'short',
          min: 0,
          queries: [{ expr: `keycast_fetcher_failing_keys{${nodes}}`, legend: '{{origin}} at {{instance}}' }],
        }),
        lines({
          title: 'How wishes are met',
          description:
            'What gateways ask for: answered from memory, joined to a fetch under way, a fetch of their own, or refused for want of room.',
          unit: 'reqps',
          min: 0,
          stacked: true,
          queries: [
            {
              expr: `sum by (met) (rate(keycast_fetcher_wants_total{${nodes}}[$__rate_interval]))`,
              legend: '{{met}}',
            },
          ],
        }),
      ],
    },
    {
      title: 'What waits',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Fetches waiting',
          description: 'Not yet with a worker. Cold: keys nobody watched before; they go first.',
          unit: 'short',
          min: 0,
          queries: [{ expr: `sum by (lane) (keycast_fetcher_fetches_waiting{${nodes}})`, legend: '{{lane}}' }],
        }),
        lines({
          title: 'Wait, 99th percentile',
          description:
            'From a fetch being wanted to its being handed out. It grows when the backend is slow or the cap is small.',
          unit: 's',
          min: 0,
          steps: [{ color: 'green' }, { color: 'red', from: 1 }],
          queries: [{ expr: quantileOf(0.99, 'keycast_fetcher_fetch_wait_seconds', 'lane'), legend: '{{lane}}' }],
        }),
        lines({
          title: 'Requests in flight',
          description:
            'By lane, and the cap for each backend (FETCHER_IN_FLIGHT_MAX). At the cap the backend decides the pace.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: `sum by (lane) (keycast_fetcher_fetches_in_flight{${nodes}})`, legend: '{{lane}}' },
            { expr: `max(keycast_fetcher_fetches_in_flight_max{${nodes}})`, legend: 'cap' },
          ],
        }),
        lines({
          title: 'Values held',
          description:
            'Against FETCHER_CACHE_BYTES_MAX. What is watched stays; where that alone fills it, keys are refused.',
          unit: 'bytes',
          min: 0,
          queries: [
            { expr: `keycast_fetcher_cache_bytes{${nodes}}`, legend: '{{instance}}' },
            { expr: `keycast_fetcher_cache_max_bytes{${nodes}}`, legend: '{{instance}} at most' },
          ],
        }),
        lines({
          title: 'Workers',
          description: 'Those that take requests. Ended ones are replaced at once.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: `keycast_fetcher_workers{${nodes}}`, legend: '{{instance}}' },
            {
              expr: `sum by (reason) (increase(keycast_fetcher_worker_restarts_total{${nodes}}[$__rate_interval]))`,
              legend: 'lost: {{reason}}',
            },
          ],
        }),
        lines({
          title: 'Owed to gateways',
          description:
            'Keys whose latest state some gateway is still to be sent: those gateways, or the links to them, are slow.',
          unit: 'short',
          min: 0,
          queries: [{ expr: `keycast_fetcher_link_lacking_keys{${nodes}}`, legend: '{{instance}}' }],
        }),
      ],
    },
  ],
})
