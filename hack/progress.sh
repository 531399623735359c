#!/usr/bin/env bash
# Reads what "go build -v" says, and tells every 10 s how many packages are compiled: progress.sh WHAT TOTAL.
# What is no package and no download, it passes on: errors and warnings.
set -euo pipefail
what=$1 total=$2 done=0 last=$SECONDS

while IFS= read -r line; do
  case $line in
  'go: downloading '*) continue ;;
  *' '* | '#'*) echo "$line" >&2 ;;
  *) done=$((done + 1)) ;;
  esac
  if ((SECONDS - last >= 10)); then
    echo "$what: $done of $total packages compiled ($SECONDS s)" >&2
    last=$SECONDS
  fi
done
