# Every setting of the proxy: default, reason, check; and below, what the template needs of them as lines of nginx. Read by
# start.sh in a container, and by scripts/proxy.js on a host, where other defaults hold for addresses, ports and folders (its
# --help).

wrong=

# Exports a setting: what it was given, or the default. One that is empty counts as not given.
setting() { # NAME DEFAULT
  name=$1
  eval "value=\${$1:-\$2}"
  export "$name=$value"
  [ "$(printf %s "$value" | wc -l)" -eq 0 ] || must 'one line'
}

must() {
  wrong="$wrong
  $name must be $1, not \"$value\""
}

matches() { printf '%s\n' "$value" | grep -Eqx "$1"; }
list() { matches "($1( +$1)*)?" || must "$2, separated by spaces"; }
whole() { matches '[0-9]{1,9}' && [ "$value" -ge "$1" ] && [ "$value" -le "$2" ] || must "a whole number from $1 to $2"; }
seconds() { matches '[0-9]{1,9}s' && [ "${value%s}" -ge "$1" ] && [ "${value%s}" -le "$2" ] || must "${1}s to ${2}s"; }
flag() { matches 'on|off' || must 'on or off'; }

octet='(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
ipv4="$octet(\.$octet){3}"
group='[0-9a-fA-F]{1,4}'
ipv6="(($group:){7}$group|(($group:){0,6}$group)?::(($group:){0,6}$group)?)"
network="($ipv4(/(3[0-2]|[12]?[0-9]))?|$ipv6(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?)"
host='[A-Za-z0-9_.-]+'
quotable='[^"\$]+'

# --- settings -------------------------------------------------------------------------------------------------------

# HOST:PORT of each gateway; every address of a name that PROXY_RESOLVER knows.
setting PROXY_GATEWAYS gateway:8080
list "($host|\[$ipv6\]):[0-9]{1,5}" 'HOST:PORT of each gateway'

# Name server, asked every 5 s for the IPv4 addresses of gateways given by name; Docker's own. With "off" a name is looked
# up once, at start: nginx before 1.27.3 can do no more.
setting PROXY_RESOLVER 127.0.0.11
matches "off|($ipv4|\[$ipv6\])(:[0-9]{1,5})?" || must 'the address of a name server, or off'

# Addresses to listen on: IPv4, and IPv6 where the system has it.
[ -e /proc/net/if_inet6 ] && addresses='0.0.0.0 ::' || addresses=0.0.0.0
setting PROXY_HOST "$addresses"
list "($host|$ipv6|\[$ipv6\])" 'the addresses to listen on'
setting PROXY_HTTP_PORT 8080
whole 1 65535
setting PROXY_HTTPS_PORT 8443
whole 1 65535
# The port clients know HTTPS under: the redirect names it.
setting PROXY_PUBLIC_PORT 443
whole 1 65535

# Holds fullchain.pem and privkey.pem; a self-signed pair is made in an empty one.
setting PROXY_CERTIFICATES /etc/nginx/certificates
matches "/$quotable" || must 'an absolute path without ", \ and $'
# Names and addresses a self-signed certificate is made for.
setting PROXY_NAMES 'localhost 127.0.0.1'
list "((\*\.)?$host|$ipv6)" 'names and addresses'
# Whether requests to other hosts than these are refused (421).
setting PROXY_NAMES_ONLY off
flag

# Load balancers before this proxy. Their word is taken for who the client is (X-Forwarded-For, or PROXY_PROTOCOL) and for
# its having come over HTTPS (X-Forwarded-Proto: https, on the HTTP port). Nobody else's is.
setting PROXY_TRUSTED ''
list "$network" 'addresses or networks such as 10.0.0.0/8'
# Whether every connection begins with the PROXY protocol, as balancers that pass TLS through send it.
setting PROXY_PROTOCOL off
flag
[ "$PROXY_PROTOCOL" = off ] || [ -n "$PROXY_TRUSTED" ] || must 'off while PROXY_TRUSTED names no balancer'

# Requests under way, a WebSocket for as long as it is open, and WebSocket handshakes and other requests a second, of one
# client: an IPv4 address, or a /64 of IPv6, which is what one customer gets.
setting PROXY_CONNECTIONS_PER_ADDRESS 256
whole 1 65535
setting PROXY_HANDSHAKES_PER_SECOND 20
whole 1 1000000
setting PROXY_HANDSHAKES_BURST 256
whole 1 1000000
setting PROXY_REQUESTS_PER_SECOND 200
whole 1 1000000
# Clients those limits do not count.
setting PROXY_EXEMPT ''
list "$network" 'addresses or networks such as 10.0.0.0/8'

# Silence after which a gateway is given up for a value or a page and one other is asked. Keep it above the longest
# `timeout` in keycast.yaml by 2 s: a gateway waits that long for its fetcher.
setting PROXY_ANSWER_TIMEOUT 5s
seconds 2 600
# How long a reload or a stop leaves WebSockets open. The container's stop grace must be longer.
setting PROXY_SHUTDOWN_TIMEOUT 10s
seconds 1 86400

# Connections a worker holds, two per session, and the files it may open: some are logs, listening sockets and its own.
# By default no more than the system lets it (ulimit -n).
files=$(ulimit -Hn)
[ "$files" != unlimited ] || files=1000000
setting PROXY_WORKER_CONNECTIONS "$((files < 16064 ? files - 64 : 16000))"
whole 16 1000000
files_wanted=16384
matches '[0-9]{1,9}' && files_wanted=$((value + 384))
setting PROXY_OPEN_FILES "$((files < files_wanted ? files : files_wanted))"
whole 16 100000000

# Strict-Transport-Security, such as "max-age=31536000". Set it once a real certificate is there: a browser that knows it
# lets nobody past a self-signed one.
setting PROXY_HSTS ''
matches '[A-Za-z0-9=; -]*' || must 'a value of Strict-Transport-Security'
setting PROXY_ACCESS_LOG /dev/stdout
matches "(/|syslog:)$quotable" || must 'an absolute path or syslog:…, without ", \ and $'

if [ -n "$wrong" ]; then
  echo "settings that cannot be used:$wrong" >&2
  exit 2
fi

# --- as lines of nginx ----------------------------------------------------------------------------------------------

set -f # a name may be *.example.org

PROXY_GATEWAY_LINES=
for value in $PROXY_GATEWAYS; do
  followed=' resolve'
  if [ "$PROXY_RESOLVER" = off ] || matches "($ipv4|\[.*\]):.*"; then followed=; fi
  # Why max_fails is 0: see proxy_next_upstream in the template.
  PROXY_GATEWAY_LINES="$PROXY_GATEWAY_LINES server $value$followed max_fails=0;"
done

PROXY_RESOLVER_LINE=
[ "$PROXY_RESOLVER" = off ] || PROXY_RESOLVER_LINE="resolver $PROXY_RESOLVER valid=5s ipv6=off;"

proxy_protocol=
PROXY_CLIENT_HEADER=X-Forwarded-For
if [ "$PROXY_PROTOCOL" = on ]; then
  proxy_protocol=' proxy_protocol'
  PROXY_CLIENT_HEADER=proxy_protocol
fi
PROXY_LISTEN_LINES=
for value in $PROXY_HOST; do
  if matches "$ipv6"; then value="[$value]"; fi
  PROXY_LISTEN_LINES="$PROXY_LISTEN_LINES listen $value:$PROXY_HTTP_PORT$proxy_protocol backlog=4096;"
  PROXY_LISTEN_LINES="$PROXY_LISTEN_LINES listen $value:$PROXY_HTTPS_PORT ssl$proxy_protocol backlog=4096;"
done

PROXY_EXEMPT_LINES=
for value in $PROXY_EXEMPT; do PROXY_EXEMPT_LINES="$PROXY_EXEMPT_LINES $value 1;"; done
PROXY_TRUSTED_LINES=
PROXY_BALANCER_LINES=
for value in $PROXY_TRUSTED; do
  PROXY_TRUSTED_LINES="$PROXY_TRUSTED_LINES set_real_ip_from $value;"
  PROXY_BALANCER_LINES="$PROXY_BALANCER_LINES $value 1;"
done

PROXY_FOREIGN_LINES='default 0;'
if [ "$PROXY_NAMES_ONLY" = on ]; then
  PROXY_FOREIGN_LINES='default 1;'
  for value in $PROXY_NAMES; do
    if matches "$ipv6"; then value="[$value]"; fi
    PROXY_FOREIGN_LINES="$PROXY_FOREIGN_LINES $value 0;"
  done
fi

# One silent gateway and some that take no connection leave time for another; two silent ones are enough.
PROXY_NEXT_GATEWAY_TIMEOUT="$((2 * ${PROXY_ANSWER_TIMEOUT%s} - 1))s"

set +f
export PROXY_GATEWAY_LINES PROXY_RESOLVER_LINE PROXY_CLIENT_HEADER PROXY_LISTEN_LINES PROXY_EXEMPT_LINES PROXY_TRUSTED_LINES \
  PROXY_BALANCER_LINES PROXY_FOREIGN_LINES PROXY_NEXT_GATEWAY_TIMEOUT
