{{/* The image of every program: imageRegistry, imageNamespace and image.name move it to another registry. */}}
{{- define "parley.image" -}}
{{- $path := compact (list .Values.imageRegistry .Values.imageNamespace .Values.image.name) | join "/" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- /* The digest of the release is that of its own tag alone. */}}
{{- $digest := .Values.image.digest -}}
{{- if not (or $digest .Values.image.tag) -}}
{{- $digest = index (.Chart.Annotations | default dict) "parley.dev/image-digest" -}}
{{- end -}}
{{- if $digest -}}
{{- printf "%s:%s@%s" $path $tag $digest -}}
{{- else -}}
{{- printf "%s:%s" $path $tag -}}
{{- end -}}
{{- end -}}

{{/*
Prints an object of config/ in the namespace of the release, with the labels of all objects.
Takes a dict: root, object.
*/}}
{{- define "parley.object" -}}
{{- $o := .object -}}
{{- $clusterScoped := list "CustomResourceDefinition" "ClusterRole" "ClusterRoleBinding" "FlowSchema" "PriorityLevelConfiguration" "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" "MutatingAdmissionPolicy" "MutatingAdmissionPolicyBinding" -}}
{{- if not (has $o.kind $clusterScoped) -}}
{{- if not $o.metadata.namespace -}}
{{- $_ := set $o.metadata "namespace" .root.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- range $o.subjects -}}
{{- if eq .kind "ServiceAccount" -}}{{- $_ := set . "namespace" $.root.Release.Namespace -}}{{- end -}}
{{- end -}}
{{- $labels := merge (dict "app.kubernetes.io/name" "parley") (.root.Values.global.commonLabels | default dict) ($o.metadata.labels | default dict) -}}
{{- $_ := set $o.metadata "labels" $labels }}
---
{{ toYaml $o }}
{{- end -}}

{{/*
Prints the objects of a file of config/. Takes a dict: root, file, and optionally kind (of this kind alone) and labels.
*/}}
{{- define "parley.objects" -}}
{{- $root := .root -}}
{{- $kind := .kind -}}
{{- $labels := .labels -}}
{{- range $document := splitList "\n---\n" ($root.Files.Get .file) -}}
{{- $o := fromYaml $document -}}
{{- if and $o.kind (or (not $kind) (eq $o.kind $kind)) -}}
{{- /* That of the kustomization, if it names one. */}}
{{- $_ := unset $o.metadata "namespace" -}}
{{- include "parley.set" (list $o.metadata "labels" $labels) -}}
{{- include "parley.object" (dict "root" $root "object" $o) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Prints the roles and bindings of a file of config/. With a list of namespaces, the named bindings are made in each of them
in place of the whole cluster. Takes a dict: root, file, bindings.
*/}}
{{- define "parley.rights" -}}
{{- $root := .root -}}
{{- $bindings := .bindings -}}
{{- range $document := splitList "\n---\n" ($root.Files.Get .file) -}}
{{- $o := fromYaml $document -}}
{{- $kind := $o.kind | default "ServiceAccount" -}}
{{- if and $root.Values.namespaces (eq $kind "ClusterRoleBinding") (has $o.metadata.name $bindings) -}}
{{- range $namespace := $root.Values.namespaces -}}
{{- $binding := deepCopy $o -}}
{{- $_ := set $binding "kind" "RoleBinding" -}}
{{- $_ := set $binding "metadata" (dict "name" $o.metadata.name "namespace" $namespace) -}}
{{- include "parley.object" (dict "root" $root "object" $binding) -}}
{{- end -}}
{{- else if ne $kind "ServiceAccount" -}}
{{- include "parley.object" (dict "root" $root "object" $o) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Puts the entries of a map over those of a field of another map, which keeps its others. Takes a list: map, field, value. */}}
{{- define "parley.merge" -}}
{{- if index . 2 -}}
{{- $_ := set (index . 0) (index . 1) (mergeOverwrite (dict) (index . 0 (index . 1) | default dict) (index . 2)) -}}
{{- end -}}
{{- end -}}

{{/* Sets a field of a map if the value is not empty. Takes a list: map, field, value. */}}
{{- define "parley.set" -}}
{{- if index . 2 -}}{{- $_ := set (index . 0) (index . 1) (index . 2) -}}{{- end -}}
{{- end -}}

{{/*
Changes a Deployment of config/ as the values of its component say, and prints it.
Takes a dict: root, deployment, values, args and env (lists that are appended), volumes and mounts.
*/}}
{{- define "parley.deployment" -}}
{{- $root := .root -}}
{{- $v := .values -}}
{{- $global := $root.Values.global -}}
{{- $d := .deployment -}}
{{- $meta := $d.spec.template.metadata -}}
{{- $pod := $d.spec.template.spec -}}
{{- $c := first $pod.containers -}}
{{- $_ := set $d.spec "replicas" (int $v.replicaCount) -}}
{{- include "parley.set" (list $d.spec "strategy" $v.strategy) -}}
{{- $_ := set $meta "labels" (mergeOverwrite (dict) ($global.commonLabels | default dict) ($v.podLabels | default dict) $meta.labels) -}}
{{- include "parley.set" (list $meta "annotations" $v.podAnnotations) -}}
{{- include "parley.set" (list $pod "imagePullSecrets" $global.imagePullSecrets) -}}
{{- include "parley.merge" (list $pod "nodeSelector" ($v.nodeSelector | default $global.nodeSelector)) -}}
{{- include "parley.set" (list $pod "tolerations" ($v.tolerations | default $global.tolerations)) -}}
{{- include "parley.set" (list $pod "affinity" ($v.affinity | default $global.affinity)) -}}
{{- include "parley.set" (list $pod "topologySpreadConstraints" $v.topologySpreadConstraints) -}}
{{- include "parley.set" (list $pod "priorityClassName" ($v.priorityClassName | default $global.priorityClassName)) -}}
{{- include "parley.merge" (list $pod "securityContext" $v.securityContext) -}}
{{- include "parley.merge" (list $c "securityContext" $v.containerSecurityContext) -}}
{{- include "parley.merge" (list $c "resources" $v.resources) -}}
{{- $_ := set $c "image" (include "parley.image" $root) -}}
{{- $_ := set $c "imagePullPolicy" $root.Values.image.pullPolicy -}}
{{- include "parley.set" (list $c "args" (concat ($c.args | default list) .args ($v.extraArgs | default list))) -}}
{{- $env := list -}}
{{- $replaced := list -}}
{{- range $v.extraEnv -}}{{- $replaced = append $replaced .name -}}{{- end -}}
{{- range concat $c.env .env -}}
{{- if not (has .name $replaced) -}}{{- $env = append $env . -}}{{- end -}}
{{- end -}}
{{- with $root.Values.archive -}}
{{- if .url -}}
{{- $env = append $env (dict "name" "PARLEY_ARCHIVE_URL" "value" .url) -}}
{{- $_ := set $c "envFrom" (list (dict "secretRef" (dict "name" .secretName "optional" true))) -}}
{{- end -}}
{{- end -}}
{{- include "parley.set" (list $c "env" (concat $env ($v.extraEnv | default list))) -}}
{{- include "parley.set" (list $pod "volumes" (concat .volumes ($v.volumes | default list))) -}}
{{- include "parley.set" (list $c "volumeMounts" (concat .mounts ($v.volumeMounts | default list))) -}}
{{- include "parley.object" (dict "root" $root "object" $d) -}}
{{- end -}}

{{/* Prints a PodDisruptionBudget of a component. Takes a dict: root, name, values. */}}
{{- define "parley.podDisruptionBudget" -}}
{{- $v := .values.podDisruptionBudget -}}
{{- if $v.enabled -}}
{{- $spec := dict "selector" (dict "matchLabels" (dict "app.kubernetes.io/name" "parley" "app.kubernetes.io/component" .name)) "unhealthyPodEvictionPolicy" "AlwaysAllow" -}}
{{- if hasKey $v "minAvailable" -}}
{{- $_ := set $spec "minAvailable" $v.minAvailable -}}
{{- else -}}
{{- $_ := set $spec "maxUnavailable" (hasKey $v "maxUnavailable" | ternary $v.maxUnavailable 1) -}}
{{- end -}}
{{- $o := dict "apiVersion" "policy/v1" "kind" "PodDisruptionBudget" "metadata" (dict "name" (printf "parley-%s" .name)) "spec" $spec -}}
{{- include "parley.object" (dict "root" .root "object" $o) -}}
{{- end -}}
{{- end -}}

{{/* The settings of the pods that the manager creates, as its file for --pods-config has them; {} if there are none. */}}
{{- define "parley.pods" -}}
{{- $global := .Values.global -}}
{{- $all := dict -}}
{{- range $name := list "generation" "workspaces" -}}
{{- $v := index $.Values $name -}}
{{- $pods := dict -}}
{{- if ne $.Values.image.pullPolicy "IfNotPresent" -}}{{- $_ := set $pods "imagePullPolicy" $.Values.image.pullPolicy -}}{{- end -}}
{{- include "parley.set" (list $pods "imagePullSecrets" $global.imagePullSecrets) -}}
{{- /* Parley's own labels, and the priorities of the cluster, are refused for the pods that the manager creates. */}}
{{- $labels := dict -}}
{{- range $key, $value := $global.commonLabels -}}
{{- if not (or (hasPrefix "parley.dev/" $key) (has $key (list "app.kubernetes.io/name" "app.kubernetes.io/component"))) -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- end -}}
{{- $priority := $global.priorityClassName -}}
{{- if hasPrefix "system-" ($priority | default "") -}}{{- $priority = "" -}}{{- end -}}
{{- include "parley.set" (list $pods "labels" (mergeOverwrite $labels ($v.podLabels | default dict))) -}}
{{- include "parley.set" (list $pods "annotations" $v.podAnnotations) -}}
{{- include "parley.set" (list $pods "nodeSelector" ($v.nodeSelector | default $global.nodeSelector)) -}}
{{- include "parley.set" (list $pods "tolerations" ($v.tolerations | default $global.tolerations)) -}}
{{- include "parley.set" (list $pods "affinity" ($v.affinity | default $global.affinity)) -}}
{{- include "parley.set" (list $pods "topologySpreadConstraints" $v.topologySpreadConstraints) -}}
{{- include "parley.set" (list $pods "priorityClassName" ($v.priorityClassName | default $priority)) -}}
{{- include "parley.set" (list $pods "runtimeClassName" $v.runtimeClassName) -}}
{{- include "parley.set" (list $pods "resources" $v.resources) -}}
{{- if eq $name "generation" -}}{{- include "parley.set" (list $pods "relayResources" $v.relayResources) -}}{{- end -}}
{{- if eq $name "workspaces" -}}{{- include "parley.set" (list $pods "anyUser" $v.anyUser) -}}{{- end -}}
{{- include "parley.set" (list $all $name $pods) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}
