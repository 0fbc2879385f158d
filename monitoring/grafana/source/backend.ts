// Backend: what is it spared, how does it answer, and what waits for it?
import { dashboard, lines, stat } from './panels.ts'

const nodes = 'instance=~"$fetcher"'
const ofBackend = `${nodes}, origin=~"$origin"`

/** @param histogram without _bucket */
const quantileOf = (quantile: number, histogram: string, by: string, labels: string = nodes) =>
  `histogram_quantile(${quantile}, sum by (${by}, le) (rate(${histogram}_bucket{${labels}}[$__rate_interval])))`

export const backend = dashboard({
  uid: 'keycast-backend',
  title: 'Keycast: backend',
  description: 'How much load does the backend get, how does it answer, and what queues for it?',
  variables: [
    { name: 'fetcher', label: 'Fetcher node', query: 'label_values(keycast_fetcher_workers, instance)' },
    { name: 'origin', label: 'Backend', query: 'label_values(keycast_fetcher_watched_keys, origin)' },
  ],
  rows: [
    {
      title: 'Backend health',
      height: 5,
      perLine: 6,
      panels: [
        stat({
          title: 'Requests saved',
          description:
            'Share of backend requests saved, compared with every session polling as often as the fetcher does.',
          unit: 'percentunit',
          decimals: 1,
          min: 0,
          max: 1,
          queries: [{ expr: '1 - sum(keycast:backend_requests:rate1m) / keycast:backend_requests_without:rate1m' }],
        }),
        stat({
          title: 'Requests',
          description: 'Requests to the backend per second. They follow keys and refresh, not the number of sessions.',
          unit: 'reqps',
          queries: [{ expr: 'sum(keycast:backend_requests:rate1m)' }],
        }),
        stat({
          title: 'Failures',
          description: 'Share of requests that fail: time-outs, 5xx, 429, refused connections, invalid content.',
          unit: 'percentunit',
          decimals: 1,
          min: 0,
          max: 1,
          steps: [{ color: 'green' }, { color: 'orange', from: 0.01 }, { color: 'red', from: 0.1 }],
          queries: [{ expr: 'keycast:backend_failures:ratio_rate1m' }],
        }),
        stat({
          title: 'Open breakers',
          description:
            'Backends to which the fetcher sends one probe a second only, because half of at least 20 requests failed. Fix the backend.',
          unit: 'short',
          steps: [{ color: 'green' }, { color: 'red', from: 1 }],
          queries: [{ expr: 'sum(keycast_fetcher_breaker_open)' }],
        }),
        stat({
          title: 'Keys failing',
          description:
            'Watched keys whose last fetch failed. Viewers keep the previous value and are told that it is stale.',
          unit: 'short',
          steps: [{ color: 'green' }, { color: 'orange', from: 1 }, { color: 'red', from: 100 }],
          queries: [{ expr: 'sum(keycast_fetcher_failing_keys)' }],
        }),
        stat({
          title: 'Cold keys queued',
          description: 'Keys without a value whose first fetch has not started.',
          unit: 'short',
          steps: [{ color: 'green' }, { color: 'orange', from: 256 }, { color: 'red', from: 2560 }],
          queries: [{ expr: 'sum(keycast_fetcher_fetches_waiting{lane="cold"})' }],
        }),
      ],
    },
    {
      title: 'Requests saved',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Requests, with and without Keycast',
          description:
            'The gap between the lines is what Keycast saves. The lower line follows keys and refresh alone.',
          unit: 'reqps',
          min: 0,
          queries: [
            { expr: 'sum(keycast:backend_requests:rate1m)', legend: 'asked' },
            { expr: 'keycast:backend_requests_without:rate1m', legend: 'if sessions polled' },
          ],
        }),
        lines({
          title: 'Cache hits',
          description: 'Share of gets, subscriptions and HTTP polls that a gateway answers at once from its cache.',
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
          title: 'Waits over HTTP',
          description:
            'Requests at /v1/wait: those that wait now, and those answered a second, by status. Caches send them.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: 'sum(keycast_gateway_waits)', legend: 'waiting' },
            {
              expr: 'sum by (status) (rate(keycast_gateway_http_waits_total[$__rate_interval]))',
              legend: '{{status}} /s',
            },
          ],
        }),
        lines({
          title: 'Not modified',
          description:
            '304: the backend answers with a header alone. unchanged: it sends the same bytes again, which honouring If-None-Match would save.',
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
      title: 'Responses',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Outcomes',
          description:
            'value: new content. not_modified: 304. unchanged: the same bytes again. not_found: 404 or 410. Every other outcome is a failure, by error code.',
          unit: 'reqps',
          min: 0,
          stacked: true,
          queries: [
            {
              expr: `sum by (outcome) (rate(keycast_fetcher_fetch_seconds_count{${ofBackend}}[$__rate_interval])) > 0`,
              legend: '{{outcome}}',
            },
          ],
        }),
        lines({
          title: 'Time to an outcome',
          description:
            'Time of backend and worker, from handing a fetch to the worker to its result. The namespace’s timeout is its upper limit.',
          unit: 's',
          min: 0,
          queries: [0.5, 0.9, 0.99].map(quantile => ({
            expr: quantileOf(quantile, 'keycast_fetcher_fetch_seconds', 'job', ofBackend),
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'New bytes',
          description: 'Bytes of changed content per second. Each gateway that watches the key gets a copy.',
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
          title: 'Values handed over',
          description:
            'Values and deletions that backends handed over. older: a newer one had come before. refused: there was no room, or gateways have another configuration.',
          unit: 'reqps',
          min: 0,
          stacked: true,
          queries: [
            {
              expr: `sum by (outcome) (rate(keycast_fetcher_handed_over_total{${nodes}}[$__rate_interval]))`,
              legend: '{{outcome}}',
            },
          ],
        }),
        lines({
          title: 'Breaker',
          description: '1 while the breaker is open: after too many failures a namespace gets one probe a second only.',
          unit: 'short',
          min: 0,
          max: 1,
          steps: [{ color: 'green' }, { color: 'red', from: 1 }],
          queries: [
            {
              expr: `keycast_fetcher_breaker_open{${ofBackend}}`,
              legend: '{{namespace}} of {{origin}} at {{instance}}',
            },
          ],
        }),
        lines({
          title: 'Stream of changes, down',
          description:
            'For how long the stream of events that tells what changed has been down: keys are polled in its place.',
          unit: 's',
          min: 0,
          steps: [{ color: 'green' }, { color: 'orange', from: 60 }],
          queries: [
            {
              expr: 'keycast_fetcher_changes_down_seconds{instance=~"$fetcher"}',
              legend: '{{origin}} at {{instance}}',
            },
          ],
        }),
        lines({
          title: 'Stream of changes, opened',
          description:
            'In ten minutes. Many: it breaks off again and again. anew: all watched keys are asked for each time.',
          unit: 'short',
          min: 0,
          steps: [{ color: 'green' }, { color: 'orange', from: 10 }],
          queries: [
            {
              expr: 'sum by (origin, how) (increase(keycast_fetcher_changes_opened_total{instance=~"$fetcher"}[10m]))',
              legend: '{{origin}} {{how}}',
            },
          ],
        }),
        lines({
          title: 'Keys failing',
          description: 'Watched keys whose last fetch failed, by backend, and how many are watched.',
          unit: 'short',
          min: 0,
          queries: [
            {
              expr: `sum by (origin, instance) (keycast_fetcher_failing_keys{${ofBackend}})`,
              legend: '{{origin}} at {{instance}}',
            },
            {
              expr: `sum by (origin) (keycast_fetcher_watched_keys{${ofBackend}})`,
              legend: 'watched of {{origin}}',
            },
          ],
        }),
        lines({
          title: 'Requests from gateways',
          description:
            'Watches and gets by how they were met: from memory, by the plan of another node, by a fetch under way (coalesced), by a new fetch. Refused ones by code: forbidden and token_expired are the end of a right, share is one user or address that held too much, the others are faults.',
          unit: 'reqps',
          min: 0,
          stacked: true,
          queries: [
            {
              expr: `sum by (met) (rate(keycast_fetcher_wants_total{${nodes}}[$__rate_interval]))`,
              legend: '{{met}}',
            },
            {
              expr: `sum by (code) (rate(keycast_fetcher_wants_refused_total{${nodes}}[$__rate_interval]))`,
              legend: 'refused: {{code}}',
            },
          ],
        }),
      ],
    },
    {
      title: 'Queues',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Queued fetches',
          description: 'Fetches not yet with a worker. cold: keys without a value; they go first.',
          unit: 'short',
          min: 0,
          queries: [{ expr: `sum by (lane) (keycast_fetcher_fetches_waiting{${nodes}})`, legend: '{{lane}}' }],
        }),
        lines({
          title: 'Time in the queue, 99th percentile',
          description:
            'From the request for a fetch to handing it to a worker. It grows when the backend is slow, or the cap is low.',
          unit: 's',
          min: 0,
          steps: [{ color: 'green' }, { color: 'red', from: 1 }],
          queries: [{ expr: quantileOf(0.99, 'keycast_fetcher_fetch_wait_seconds', 'lane'), legend: '{{lane}}' }],
        }),
        lines({
          title: 'Requests in flight',
          description:
            'By queue, with the limit of each namespace: as many as do not make its backend slower. At the limit the backend sets the pace.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: `sum by (lane) (keycast_fetcher_fetches_in_flight{${nodes}})`, legend: '{{lane}}' },
            {
              expr: `max by (origin, namespace) (keycast_fetcher_fetch_limit{${ofBackend}})`,
              legend: 'limit of {{namespace}}',
            },
          ],
        }),
        lines({
          title: 'Keys in a request for many',
          description:
            'The mean, where namespaces have a batch. It is small while few keys are watched, or while keys of a backend that refuses requests for many are asked for alone.',
          unit: 'short',
          min: 0,
          queries: [
            {
              expr: `sum(rate(keycast_fetcher_batch_keys_sum{${nodes}}[$__rate_interval])) / sum(rate(keycast_fetcher_batch_keys_count{${nodes}}[$__rate_interval]))`,
              legend: 'keys',
            },
          ],
        }),
        lines({
          title: 'Who may read',
          description:
            'Questions to backends that decide it (authorize), by answer, and those answered from memory. Failed ones keep new viewers out.',
          unit: 'reqps',
          min: 0,
          queries: [
            {
              expr: `sum by (origin, verdict) (rate(keycast_fetcher_authorize_answers_total{${nodes}}[$__rate_interval]))`,
              legend: '{{verdict}} by {{origin}}',
            },
            {
              expr: `sum(rate(keycast_fetcher_authorize_questions_total{${nodes}, met="memory"}[$__rate_interval]))`,
              legend: 'from memory',
            },
            { expr: `sum(keycast_fetcher_authorize_waiting{${nodes}})`, legend: 'waiting (number)' },
          ],
        }),
        lines({
          title: 'Values held',
          description:
            'Bytes in the cache, with FETCHER_CACHE_BYTES_MAX. Watched values are never evicted; when they fill the cache, new keys are refused: first to users and addresses that hold much.',
          unit: 'bytes',
          min: 0,
          queries: [
            { expr: `keycast_fetcher_cache_bytes{${nodes}}`, legend: '{{instance}}' },
            { expr: `keycast_fetcher_cache_wanted_bytes{${nodes}}`, legend: '{{instance}} watched' },
            { expr: `keycast_fetcher_cache_max_bytes{${nodes}}`, legend: '{{instance}} at most' },
          ],
        }),
        lines({
          title: 'Accounts',
          description:
            'Users, addresses and networks that pay for a key. When few of them hold a full cache, look at who they are; when many do, the node is too small.',
          unit: 'short',
          min: 0,
          queries: [{ expr: `keycast_fetcher_accounts{${nodes}}`, legend: '{{instance}}' }],
        }),
        lines({
          title: 'Workers',
          description:
            'Workers that take fetches, and those that ended, by reason. An ended worker is replaced at once.',
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
          title: 'Backlog to gateways',
          description:
            'Keys whose latest state has not been sent to every watching gateway. It grows when a gateway, or the link to it, is slow.',
          unit: 'short',
          min: 0,
          queries: [{ expr: `keycast_fetcher_link_due_keys{${nodes}}`, legend: '{{instance}}' }],
        }),
      ],
    },
  ],
})
