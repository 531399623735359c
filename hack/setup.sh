#!/usr/bin/env bash
# Installs the Debian packages that are missing: what the local cluster is built and run with, with the argument "tests"
# what the tests need in addition, with "release" what the check of a release needs, with "site" what the site of the
# documentation needs, with "alerts" what the test of the alerts needs, with "install" what the tests of installations need,
# with "network" what the local cluster's network needs, and with "firefox" what the tests of the page in Firefox need.
set -euo pipefail

packages=(
  make           # the targets
  gcc libc6-dev  # runc and the race detector are built with cgo
  pkg-config libseccomp-dev # runc filters system calls with libseccomp
  iproute2       # ip: the cluster's private network
  mount          # mount, umount: the kubelet mounts volumes with them
  busybox-static # the shell of the image that workspaces in tests are made from
  util-linux     # flock: two builds at once wait for each other
)

if [ "${1:-}" = tests ]; then
  packages+=(chromium-headless-shell fonts-dejavu-core) # the tests of the page look at it
  packages+=(tmux) # the tests of the conversation in a terminal look at it
  # npm installs other people's MCP servers and clients, and the Node.js that runs them. It need not be Debian's.
  command -v npm >/dev/null || packages+=(nodejs npm)
fi

if [ "${1:-}" = release ]; then
  packages+=(qemu-user-static openssl) # runs programs for other architectures; verifies signatures
fi

if [ "${1:-}" = site ]; then
  packages+=(hugo) # makes the site of the documentation
fi

if [ "${1:-}" = alerts ]; then
  packages+=(prometheus) # promtool runs the tests of rules
fi

if [ "${1:-}" = install ]; then
  # A registry, the file with its users, a proxy, and the certificate of both. The tests start the servers.
  packages+=(docker-registry apache2-utils nginx openssl)
fi

if [ "${1:-}" = network ]; then
  packages+=(nftables iptables ipset) # for kube-proxy, and for the controller that enforces NetworkPolicies
fi

if [ "${1:-}" = firefox ]; then
  packages+=(firefox-esr)
fi

say() { echo "setup: $*" >&2; }

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "this is no Debian or Ubuntu. Install your system's packages for: ${packages[*]}"
  exit 1
fi

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
if [ ${#missing[@]} = 0 ]; then exit 0; fi
if [ "$(id -u)" != 0 ]; then
  say "needs root to install packages. Run: sudo apt-get install ${missing[*]}"
  exit 1
fi

say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# A package of a server starts it, unless this program says that it may not.
policy=/usr/sbin/policy-rc.d
if [[ "${1:-}" =~ ^(install|alerts)$ ]] && [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
  trap 'rm $policy' EXIT
fi
install_missing() { apt-get install -y -qq --no-install-recommends "${missing[@]}"; }
# The package lists may be absent or old: update them only if the first try fails.
if ! out=$(install_missing 2>&1) && ! out=$(apt-get update -qq 2>&1 && install_missing 2>&1); then
  echo "$out" >&2
  say "installing failed, see above"
  exit 1
fi
