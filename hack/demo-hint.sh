#!/usr/bin/env bash
# Says what "make demo" is about to do, and the shorter way for those who have a cluster.
# usage: demo-hint.sh KUBECTL
set -euo pipefail
cat <<END
This builds Kubernetes and Parley from source, starts a cluster on this machine, and runs a chat in it.
END
