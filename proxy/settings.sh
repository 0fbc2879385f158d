# Every setting of the proxy with its default, reason and check, and the nginx lines that the template needs of them. Read by
# start.sh in a container, and on a host by keycast proxy, whose --help lists its other defaults for addresses, ports and
# folders.

wrong=
newline='
'

# Exports a setting: the given value, or the default if it is unset or empty.
setting() { # NAME DEFAULT
  name=$1
  eval "value=\${$1:-\$2}"
  export "$name=$value"
  case $value in *"$newline"*) must 'one line' ;; esac
}

must() {
  wrong="$wrong
  $name must be $1, not \"$value\""
}

matches() { printf '%s\n' "$value" | grep -Eqx "$1"; }
list() { [ -z "$value" ] || matches "($1( +$1)*)?" || must "$2, separated by spaces"; }
# The shell counts with no more than 9 digits everywhere.
number() { case $1 in '' | *[!0-9]* | ??????????*) false ;; esac; }
between() { number "$1" && [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; }
whole() { between "$value" "$1" "$2" || must "a whole number from $1 to $2"; }
seconds() { [ "${value%s}s" = "$value" ] && between "${value%s}" "$1" "$2" || must "${1}s to ${2}s"; }
flag() { [ "$value" = on ] || [ "$value" = off ] || must 'on or off'; }

# The processors there are, or as many as a quota of CPU time comes to: cgroup v2 says both figures in a line, v1 in a file each.
processors() {
  there=$(nproc)
  quota=max
  if [ -r /sys/fs/cgroup/cpu.max ]; then
    read -r quota period </sys/fs/cgroup/cpu.max
  elif [ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
    read -r quota </sys/fs/cgroup/cpu/cpu.cfs_quota_us
    read -r period </sys/fs/cgroup/cpu/cpu.cfs_period_us
  fi
  case $quota in
    max | -1) echo "$there" ;;
    *) allowed=$(((quota + period - 1) / period)) && echo "$((allowed < there ? allowed : there))" ;;
  esac
}

octet='(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
ipv4="$octet(\.$octet){3}"
group='[0-9a-fA-F]{1,4}'
ipv6="(($group:){7}$group|(($group:){0,6}$group)?::(($group:){0,6}$group)?)"
network="($ipv4(/(3[0-2]|[12]?[0-9]))?|$ipv6(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?)"
host='[A-Za-z0-9_.-]+'
quotable='[^"\$]+'

# --- settings -------------------------------------------------------------------------------------------------------
# docs/configuration.md is made of these lines: each setting has its comment right above it, and its check right below.

# The gateways. A name that PROXY_RESOLVER knows stands for all of its addresses.
setting PROXY_GATEWAYS gateway:8080
list "($host|\[$ipv6\]):[0-9]{1,5}" 'HOST:PORT of each gateway'

# Name server, asked every 5 s for the IPv4 addresses of gateways given by name. The default is Docker's own. With off a
# name is looked up once, at start: nginx before 1.27.3 can do no more.
setting PROXY_RESOLVER 127.0.0.11
matches "off|($ipv4|\[$ipv6\])(:[0-9]{1,5})?" || must 'the address of a name server, or off'

# For clients. In the image: every IPv4 address, and every IPv6 address where the system has IPv6.
[ -e /proc/net/if_inet6 ] && addresses='0.0.0.0 ::' || addresses=0.0.0.0
setting PROXY_HOST "$addresses"
list "($host|$ipv6|\[$ipv6\])" 'the addresses to listen on'
# Port that redirects to HTTPS.
setting PROXY_HTTP_PORT 8080
whole 1 65535
# Port for clients: HTTPS and WebSocket.
setting PROXY_HTTPS_PORT 8443
whole 1 65535
# For /metrics: how many connections there are and how many fit. Never one that the public reaches. In the image: as
# PROXY_HOST.
setting PROXY_METRICS_HOST "$addresses"
list "($host|$ipv6|\[$ipv6\])" 'the addresses to listen on'
# Port for /metrics. 0: none.
setting PROXY_METRICS_PORT 8084
whole 0 65535
# Port under which clients reach HTTPS: the redirect names it.
setting PROXY_PUBLIC_PORT 443
whole 1 65535

# Folder of fullchain.pem and privkey.pem. While it holds neither, a self-signed pair is made there.
setting PROXY_CERTIFICATES /etc/nginx/certificates
matches "/$quotable" || must 'an absolute path without ", \ and $'
# What a self-signed certificate is made for.
setting PROXY_NAMES 'localhost 127.0.0.1'
list "((\*\.)?$host|$ipv6)" 'names and addresses'
# on: requests to other hosts than PROXY_NAMES are refused with 421.
setting PROXY_NAMES_ONLY off
flag

# Load balancers before this proxy. Only they are believed: about who the client is (X-Forwarded-For, or PROXY_PROTOCOL),
# and that it came over HTTPS (X-Forwarded-Proto: https, on the HTTP port).
setting PROXY_TRUSTED ''
list "$network" 'addresses or networks such as 10.0.0.0/8'
# on: every connection begins with the PROXY protocol, as balancers that pass TLS through send it. Needs PROXY_TRUSTED.
setting PROXY_PROTOCOL off
flag
[ "$PROXY_PROTOCOL" = off ] || [ -n "$PROXY_TRUSTED" ] || must 'off while PROXY_TRUSTED names no balancer'

# Limits of one client, with room for an office behind one address, also when all of it reconnects at once: a handshake
# costs nginx 0.5 ms of CPU.

# Requests under way at one time of one client; a WebSocket or event stream counts for as long as it is open. No more than
# a quarter may be others, and a sixteenth what is sent to event streams. A client is an IPv4 address, or a /64 of IPv6,
# which is what one customer gets.
setting PROXY_CONNECTIONS_PER_ADDRESS 4096
whole 1 65535
# WebSocket handshakes a second of one client.
setting PROXY_HANDSHAKES_PER_SECOND 100
whole 1 1000000
# WebSocket handshakes that one client may make at once beyond PROXY_HANDSHAKES_PER_SECOND.
setting PROXY_HANDSHAKES_BURST 2048
whole 1 1000000
# Other requests a second of one client.
setting PROXY_REQUESTS_PER_SECOND 200
whole 1 1000000
# Clients that these limits do not count.
setting PROXY_EXEMPT ''
list "$network" 'addresses or networks such as 10.0.0.0/8'

# Silence after which a gateway is given up for a value or a page. Keep it 2 s above the longest timeout in keycast.yaml: a
# gateway waits that long for its fetcher.
setting PROXY_ANSWER_TIMEOUT 5s
seconds 2 600
# How long a stop leaves WebSockets open. The container's stop grace must be longer.
setting PROXY_SHUTDOWN_TIMEOUT 10s
seconds 1 86400
# How long a reload leaves WebSockets open: a renewed certificate must not cut every client. Until then the workers of
# before stay, each with the memory of its sessions.
setting PROXY_RELOAD_TIMEOUT 86400s
seconds 1 604800

# Worker processes. By default the processors this system may use; a container's CPU quota counts.
setting PROXY_WORKERS "$(processors)"
whole 1 256

# Connections a worker holds, two for each session. By default 16000, or as many as the limit of open files allows.
files=$(ulimit -Hn)
[ "$files" != unlimited ] || files=1000000
setting PROXY_WORKER_CONNECTIONS "$((files < 16064 ? files - 64 : 16000))"
whole 16 1000000
# Files a worker may open: its connections, logs and listening sockets. By default PROXY_WORKER_CONNECTIONS and 384, or as
# many as the system allows (ulimit -n).
files_wanted=16384
if number "$value"; then files_wanted=$((value + 384)); fi
setting PROXY_OPEN_FILES "$((files < files_wanted ? files : files_wanted))"
whole 16 100000000

# The header Strict-Transport-Security, such as max-age=31536000. Set it once a real certificate is there: a browser that
# knows it lets nobody past a self-signed one.
setting PROXY_HSTS ''
matches '[A-Za-z0-9=; -]*' || must 'a value of Strict-Transport-Security'
# Where each request is logged when it is over; a WebSocket when it ends.
setting PROXY_ACCESS_LOG /dev/stdout
matches "(/|syslog:)$quotable" || must 'an absolute path or syslog:…, without ", \ and $'

if [ -n "$wrong" ]; then
  echo "settings that cannot be used:$wrong" >&2
  exit 2
fi

# --- as lines of nginx ----------------------------------------------------------------------------------------------

metrics_type='text/plain; version=0.0.4'
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

# nginx from 1.25.5 on, if built with its stream module, counts connections of an address before it reads anything of them
# (stream.conf.template). The module may be a file of its own, which a package of its own installs.
PROXY_STREAM=off
PROXY_MODULES_LINE=
built=$("${NGINX:-nginx}" -V 2>&1) || true
version=$(printf '%s\n' "$built" | sed -n 's|^nginx version: [^/]*/\([0-9]*\)\.\([0-9]*\)\.\([0-9]*\).*|\1 \2 \3|p')
has_built() { printf '%s\n' "$built" | grep -q -- " $1\( \|$\)"; }
if [ "$(printf '%d%03d%03d' $version)" -ge 1025005 ] && has_built --with-stream_realip_module; then
  if has_built --with-stream; then
    PROXY_STREAM=on
  elif has_built --with-stream=dynamic; then
    nginx=$(readlink -f "$(command -v "${NGINX:-nginx}")")
    configured=$(printf '%s\n' "$built" | sed -n 's|.* --modules-path=\([^ ]*\).*|\1|p')
    for folder in "${nginx%/*}/../lib/nginx/modules" "$configured"; do
      [ "$PROXY_STREAM" = off ] && [ -e "$folder/ngx_stream_module.so" ] || continue
      PROXY_STREAM=on
      PROXY_MODULES_LINE="load_module \"$folder/ngx_stream_module.so\";"
    done
  fi
fi
# The directive came with nginx 1.25.1. Before, HTTP/2 would be a word of each listen: such an nginx speaks HTTP/1.1.
PROXY_HTTP2_LINE=
if [ "$(printf '%d%03d%03d' $version)" -ge 1025001 ] && has_built --with-http_v2_module; then
  PROXY_HTTP2_LINE='http2 on;'
fi
# The key exchanges that cost little. By default OpenSSL takes part in one of 8,192 bits as well, where a client asks for it:
# that is 184 ms of CPU, these take one or two. From 3.5 on it has one against quantum computers, and passes over what marked
# with ? it was built without.
PROXY_TLS_GROUPS=X25519:prime256v1
openssl=$(printf '%s\n' "$built" | sed -n 's/^built with OpenSSL \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
running=$(printf '%s\n' "$built" | sed -n 's/.*(running with OpenSSL \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
[ "$(printf '%d%03d' ${running:-$openssl})" -lt 3005 ] || PROXY_TLS_GROUPS='?X25519MLKEM768:?X25519:prime256v1'
PROXY_NO_STREAM="one address may hold all connections by requests that never end: this nginx is older than 1.25.5, or lacks \
its stream module; see docs/deploy/proxy.md, Against floods"
# An answer that is not read takes up to 272 KiB here. A longer one also keeps one of a gateway's 5,000 HTTP connections.
# Over HTTP/2 a client has a hundred of them on each connection.
PROXY_ANSWERS_PER_ADDRESS=$(((PROXY_CONNECTIONS_PER_ADDRESS + 3) / 4))
# A body that is still to come takes up to 1 MiB in a file, in a container of its memory.
PROXY_BODIES_PER_ADDRESS=$(((PROXY_CONNECTIONS_PER_ADDRESS + 15) / 16))
# Above PROXY_CONNECTIONS_PER_ADDRESS, for idle connections of browsers, and so that most clients are answered with 429.
PROXY_OPEN_PER_ADDRESS=$((PROXY_CONNECTIONS_PER_ADDRESS * 5 / 4 + 16))
[ "$PROXY_OPEN_PER_ADDRESS" -le 65535 ] || PROXY_OPEN_PER_ADDRESS=65535

proxy_protocol=
PROXY_CLIENT_HEADER=X-Forwarded-For
if [ "$PROXY_PROTOCOL" = on ]; then
  [ "$PROXY_STREAM" != off ] || proxy_protocol=' proxy_protocol'
  PROXY_CLIENT_HEADER=proxy_protocol
fi
PROXY_HTTP_LISTEN_LINES=
PROXY_HTTPS_LISTEN_LINES=
ssl=' ssl'
[ "$PROXY_STREAM" = off ] || ssl=
for value in $PROXY_HOST; do
  if matches "$ipv6"; then value="[$value]"; fi
  PROXY_HTTP_LISTEN_LINES="$PROXY_HTTP_LISTEN_LINES listen $value:$PROXY_HTTP_PORT$proxy_protocol backlog=4096;"
  PROXY_HTTPS_LISTEN_LINES="$PROXY_HTTPS_LISTEN_LINES listen $value:$PROXY_HTTPS_PORT$ssl$proxy_protocol backlog=4096;"
done
PROXY_LISTEN_LINES="$PROXY_HTTP_LISTEN_LINES $PROXY_HTTPS_LISTEN_LINES"
# In the folder that nginx is started in: the path of a socket may have no more than 107 bytes.
[ "$PROXY_STREAM" = off ] || PROXY_LISTEN_LINES='listen unix:http.sock; listen unix:https.sock ssl;'

# With the PROXY protocol a connection is counted for whoever made it, and again for the client that a balancer names. Counted
# then alone, one that says nothing would count for nobody.
PROXY_HTTP_SOCKET=http.sock
PROXY_HTTPS_SOCKET=https.sock
PROXY_TOLD_LINES=
if [ "$PROXY_PROTOCOL" = on ]; then
  PROXY_HTTP_SOCKET=told-http.sock
  PROXY_HTTPS_SOCKET=told-https.sock
  PROXY_TOLD_LINES="proxy_protocol_timeout 10s; limit_conn_zone \$limited_client zone=told:10m;"
  for value in http https; do
    PROXY_TOLD_LINES="$PROXY_TOLD_LINES server { listen unix:told-$value.sock proxy_protocol;"
    PROXY_TOLD_LINES="$PROXY_TOLD_LINES limit_conn told $PROXY_OPEN_PER_ADDRESS; pass unix:$value.sock; }"
  done
fi

# A server of its own, or none: one without a port would take port 80.
PROXY_METRICS_LINES=
if [ "$PROXY_METRICS_PORT" != 0 ]; then
  for value in $PROXY_METRICS_HOST; do
    if matches "$ipv6"; then value="[$value]"; fi
    PROXY_METRICS_LINES="$PROXY_METRICS_LINES listen $value:$PROXY_METRICS_PORT;"
  done
  PROXY_METRICS_LINES="server {$PROXY_METRICS_LINES access_log off; location / { return 404; }"
  PROXY_METRICS_LINES="$PROXY_METRICS_LINES location = /metrics { default_type '$metrics_type'; return 200 \$metrics; } }"
fi
# A session takes two of a worker's connections: the client's and the gateway's.
PROXY_CLIENTS_MAX=$((PROXY_WORKERS * PROXY_WORKER_CONNECTIONS / 2))

PROXY_EXEMPT_LINES=
for value in $PROXY_EXEMPT; do PROXY_EXEMPT_LINES="$PROXY_EXEMPT_LINES $value 1;"; done
PROXY_TRUSTED_LINES=
PROXY_BALANCER_LINES=
for value in $PROXY_TRUSTED; do
  PROXY_TRUSTED_LINES="$PROXY_TRUSTED_LINES set_real_ip_from $value;"
  PROXY_BALANCER_LINES="$PROXY_BALANCER_LINES $value 1;"
done

# With the PROXY protocol the client is known before the limit, elsewhere a balancer's header names it.
PROXY_STREAM_TRUSTED_LINES=
[ "$PROXY_PROTOCOL" = off ] || PROXY_STREAM_TRUSTED_LINES=$PROXY_TRUSTED_LINES

PROXY_FOREIGN_LINES='default 0;'
if [ "$PROXY_NAMES_ONLY" = on ]; then
  PROXY_FOREIGN_LINES='default 1;'
  for value in $PROXY_NAMES; do
    if matches "$ipv6"; then value="[$value]"; fi
    PROXY_FOREIGN_LINES="$PROXY_FOREIGN_LINES $value 0;"
  done
fi

set +f
export PROXY_GATEWAY_LINES PROXY_RESOLVER_LINE PROXY_CLIENT_HEADER PROXY_LISTEN_LINES PROXY_EXEMPT_LINES \
  PROXY_TRUSTED_LINES PROXY_BALANCER_LINES PROXY_HTTP2_LINE PROXY_TLS_GROUPS PROXY_FOREIGN_LINES PROXY_METRICS_LINES \
  PROXY_CLIENTS_MAX PROXY_STREAM PROXY_MODULES_LINE PROXY_NO_STREAM PROXY_ANSWERS_PER_ADDRESS PROXY_BODIES_PER_ADDRESS \
  PROXY_OPEN_PER_ADDRESS PROXY_HTTP_LISTEN_LINES PROXY_HTTPS_LISTEN_LINES PROXY_STREAM_TRUSTED_LINES PROXY_HTTP_SOCKET \
  PROXY_HTTPS_SOCKET PROXY_TOLD_LINES
