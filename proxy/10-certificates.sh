#!/bin/sh
# Start-up hook of the image: without a mounted certificate a self-signed one is made, and said.
set -euf
# Unquoted on purpose: the names are separated by spaces. -f: one may be *.example.org.
exec certificates "$PROXY_CERTIFICATES" $PROXY_NAMES
