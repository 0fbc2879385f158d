#!/bin/sh
# Entry point of the image: checks the settings, fills in the configuration, sees to a certificate, and runs nginx until it
# is told to stop. A stop lasts PROXY_SHUTDOWN_TIMEOUT at most; a reload leaves WebSockets open for PROXY_RELOAD_TIMEOUT.
set -eu
. /usr/local/share/keycast/settings.sh
cd /usr/local/share/keycast
stream=
[ "$PROXY_STREAM" = off ] || stream=stream.conf.template
[ "$PROXY_STREAM" = on ] || echo "proxy: $PROXY_NO_STREAM" >&2
cat nginx.conf.template $stream |
  envsubst "$(env | sed -n 's/^\(PROXY_[^=]*\)=.*/${\1}/p')" >/etc/nginx/conf.d/nginx.conf
# Unquoted on purpose: the names are separated by spaces. -f: one may be *.example.org.
set -f
certificates "$PROXY_CERTIFICATES" $PROXY_NAMES

# The folder of its sockets, which are left behind if nginx is killed.
cd /tmp
rm -f http.sock https.sock told-http.sock told-https.sock
nginx -p /tmp -e stderr -c /etc/nginx/conf.d/nginx.conf -g 'daemon off;' &
server=$!

stop() {
  kill -QUIT "$server"
  { sleep "${PROXY_SHUTDOWN_TIMEOUT%s}" && kill -TERM "$server"; } 2>/dev/null &
}
trap stop QUIT TERM INT
trap 'kill -HUP "$server"' HUP
trap 'kill -USR1 "$server"' USR1

# A signal ends a wait: nginx may still be there.
status=0
while kill -0 "$server" 2>/dev/null; do
  wait "$server" && status=0 || status=$?
done
exit "$status"
