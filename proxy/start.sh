#!/bin/sh
# Start-up hook of the image: checks the settings, fills in the configuration, and sees to a certificate. It renders by
# itself: the image's own step knows no checks, and whether hooks run before it depends on the image's release.
set -eu
. /usr/local/share/keycast/settings.sh
envsubst "$(env | sed -n 's/^\(PROXY_[A-Z_]*\)=.*/${\1}/p')" \
  </usr/local/share/keycast/nginx.conf.template >/etc/nginx/conf.d/nginx.conf
# Unquoted on purpose: the names are separated by spaces. -f: one may be *.example.org.
set -f
exec certificates "$PROXY_CERTIFICATES" $PROXY_NAMES
