#!/usr/bin/env bash
# Prints the folder with the manifests that install Parley from IMAGE, below the checkout.
# usage: [IMAGE=...] overlay.sh
set -euo pipefail
cd "$(dirname "$0")/.."
image=${IMAGE:-parley.dev/parley:dev}
if [ "$image" = parley.dev/parley:dev ]; then
  echo config/default
  exit
fi

name=${image%@*} tag= digest=
[ "$name" = "$image" ] || digest=${image##*@}
case ${name##*/} in *:*) tag=${name##*:} name=${name%:*} ;; esac
[ -n "$digest" ] || tag=${tag:-latest}
mkdir -p .parley/config
cat >.parley/config/kustomization.yaml <<Y
resources: [../../config/default]
images:
- name: parley.dev/parley
  newName: "$name"
  newTag: "$tag"
  digest: "$digest"
# Generation pods run the manager's image.
replacements:
- source: {kind: Deployment, name: parley-manager, fieldPath: "spec.template.spec.containers.[name=manager].image"}
  targets:
  - select: {kind: Deployment, name: parley-manager}
    fieldPaths: ["spec.template.spec.containers.[name=manager].env.[name=PARLEY_IMAGE].value"]
Y
echo .parley/config
