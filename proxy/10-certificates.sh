#!/bin/sh
# Start-up hook of the image: without a mounted certificate a self-signed one is made, and said.
set -eu
# Unquoted on purpose: the names are separated by spaces.
exec certificates "$PROXY_CERTIFICATES" $PROXY_NAMES
