#!/bin/bash
# Asks the API server that kubectl reaches whether it would take the manifests: defaults, validation and admission run, nothing is
# stored. It makes the namespace, which a dry run cannot look into before it is there, and removes it again.
#
#     KUBECONFIG=admin.conf deploy/kubernetes/dry-run.sh [KUBECTL]
set -eu -o pipefail
cd "$(dirname "$0")"
kubectl=${1:-kubectl}
namespace=podyard

command -v "$kubectl" >/dev/null || { echo "error: $kubectl is not there; say which: $0 /path/to/kubectl" >&2; exit 2; }
if ! served=$("$kubectl" version --request-timeout=10s --output=yaml 2>&1); then
    echo "error: kubectl reaches no API server: $(tail -n 1 <<<"$served"); set KUBECONFIG to one of Kubernetes v1.36" >&2
    exit 2
fi
echo "API server: $(sed -n '/^serverVersion:/,$s/^  gitVersion: //p' <<<"$served")"

if ! "$kubectl" get namespace "$namespace" >/dev/null 2>&1; then
    "$kubectl" create namespace "$namespace" >/dev/null
    trap '"$kubectl" delete namespace "$namespace" --wait=false >/dev/null' EXIT
fi
for folder in base overlays/*/; do
    echo "== $folder"
    "$kubectl" kustomize "$folder" | "$kubectl" apply --server-side --dry-run=server --validate=strict --force-conflicts --filename -
done
