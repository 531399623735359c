// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	managerKey = "Deployment/parley-system/parley-manager"
	gatewayKey = "Deployment/parley-system/parley-gateway"
	podsKey    = "ConfigMap/parley-system/parley-pods"
	pod        = "spec.template.spec."
	container  = "spec.template.spec.containers.0."
)

// valueRow says what a value does: with it, an object has something at a path.
type valueRow struct {
	// value is the path of the value in values.yaml, and given what it is set to, in YAML.
	value, given string
	// also are further values that it needs.
	also string
	// object has want at path. For options of pods, path is that in their file.
	object, path string
	want         any
}

// componentRows are the values that the manager and the gateway share.
func componentRows(component, object string) []valueRow {
	c := component + "."
	return []valueRow{
		{value: c + "replicaCount", given: "3", object: object, path: "spec.replicas", want: 3.0},
		{value: c + "strategy", given: "{type: RollingUpdate}", object: object, path: "spec.strategy.type",
			want: "RollingUpdate"},
		{value: c + "podDisruptionBudget.enabled", given: "false",
			object: "PodDisruptionBudget/parley-system/parley-" + component, path: "kind", want: nil},
		{value: c + "resources", given: "{limits: {memory: 1Gi}}", object: object,
			path: container + "resources.limits.memory", want: "1Gi"},
		{value: c + "securityContext", given: "{runAsUser: 7}", object: object, path: pod + "securityContext.runAsUser",
			want: 7.0},
		{value: c + "securityContext", given: "{runAsUser: 7}", object: object, path: pod + "securityContext.runAsNonRoot",
			want: true},
		{value: c + "resources", given: "{limits: {memory: 1Gi}}", object: object,
			path: container + "resources.requests.cpu", want: "50m"},
		{value: c + "podDisruptionBudget.maxUnavailable", given: "0",
			object: "PodDisruptionBudget/parley-system/parley-" + component, path: "spec.maxUnavailable", want: 0.0},
		{value: c + "podDisruptionBudget.minAvailable", given: "1",
			object: "PodDisruptionBudget/parley-system/parley-" + component, path: "spec.minAvailable", want: 1.0},
		{value: c + "containerSecurityContext", given: "{privileged: false}", object: object,
			path: container + "securityContext.privileged", want: false},
		{value: c + "podLabels", given: "{team: a}", object: object, path: "spec.template.metadata.labels.team", want: "a"},
		{value: c + "podAnnotations", given: "{note: b}", object: object, path: "spec.template.metadata.annotations.note",
			want: "b"},
		{value: c + "serviceAccountAnnotations", given: "{role: c}",
			object: "ServiceAccount/parley-system/parley-" + component,
			path:   "metadata.annotations.role", want: "c"},
		{value: c + "nodeSelector", given: "{pool: d}", object: object, path: pod + "nodeSelector.pool", want: "d"},
		{value: c + "tolerations", given: "[{key: e}]", object: object, path: pod + "tolerations.0.key", want: "e"},
		{value: c + "affinity", given: "{podAntiAffinity: {}}", object: object, path: pod + "affinity.podAntiAffinity",
			want: map[string]any{}},
		{value: c + "priorityClassName", given: "high", object: object, path: pod + "priorityClassName", want: "high"},
		{value: c + "topologySpreadConstraints", given: "[{topologyKey: zone}]", object: object,
			path: pod + "topologySpreadConstraints.0.topologyKey", want: "zone"},
		{value: c + "extraEnv", given: "[{name: GOMEMLIMIT, value: 1GiB}]", object: object,
			path: container + "env.last.value", want: "1GiB"},
		{value: c + "extraArgs", given: "[--profiling]", object: object, path: container + "args.last", want: "--profiling"},
		{value: c + "volumes", given: "[{name: v, emptyDir: {}}]", object: object, path: pod + "volumes.0.name", want: "v"},
		{value: c + "volumeMounts", given: "[{name: v, mountPath: /v}]", object: object,
			path: container + "volumeMounts.0.mountPath", want: "/v"},
	}
}

// podRows are the values that generation pods and workspaces share.
func podRows(kind string) []valueRow {
	k := kind + "."
	return []valueRow{
		{value: k + "resources", given: "{limits: {memory: 1Gi}}", object: podsKey, path: k + "resources.limits.memory",
			want: "1Gi"},
		{value: k + "podLabels", given: "{team: a}", object: podsKey, path: k + "labels.team", want: "a"},
		{value: k + "podAnnotations", given: "{note: b}", object: podsKey, path: k + "annotations.note", want: "b"},
		{value: k + "nodeSelector", given: "{pool: c}", object: podsKey, path: k + "nodeSelector.pool", want: "c"},
		{value: k + "tolerations", given: "[{key: d}]", object: podsKey, path: k + "tolerations.0.key", want: "d"},
		{value: k + "affinity", given: "{podAntiAffinity: {}}", object: podsKey, path: k + "affinity.podAntiAffinity",
			want: map[string]any{}},
		{value: k + "priorityClassName", given: "low", object: podsKey, path: k + "priorityClassName", want: "low"},
		{value: k + "runtimeClassName", given: "gvisor", object: podsKey, path: k + "runtimeClassName", want: "gvisor"},
		{value: k + "topologySpreadConstraints", given: "[{topologyKey: zone}]", object: podsKey,
			path: k + "topologySpreadConstraints.0.topologyKey", want: "zone"},
	}
}

// valueRows has a row for each value of the chart.
func valueRows() []valueRow {
	const ingress, route = "Ingress/parley-system/parley-gateway", "HTTPRoute/parley-system/parley-gateway"
	const withIngress = "gateway: {ingress: {enabled: true, host: chat.example}}"
	const withRoute = "gateway: {httpRoute: {enabled: true, parentRefs: [{name: public}]}}"
	const withOIDC = "gateway: {oidc: {issuerURL: 'https://i', clientSecretKey: ''}}"
	const service, monitor = "Service/parley-system/parley-gateway", "PodMonitor/parley-system/parley-generation"
	const rule, dashboard = "PrometheusRule/parley-system/parley", "ConfigMap/parley-system/parley-dashboard"
	const chats = "CustomResourceDefinition/<nil>/chats.parley.dev"
	return slices.Concat(componentRows("manager", managerKey), componentRows("gateway", gatewayKey),
		podRows("generation"), podRows("workspaces"), []valueRow{
			{value: "imageRegistry", given: "r.example", object: managerKey, path: container + "image",
				want: "r.example/parley:v0.0.0"},
			{value: "imageNamespace", given: "team", object: gatewayKey, path: container + "image",
				want: "parley.dev/team/parley:v0.0.0"},
			{value: "image.name", given: "p", object: managerKey, path: container + "env.0.value", want: "parley.dev/p:v0.0.0"},
			{value: "image.tag", given: "v9", object: managerKey, path: container + "image", want: "parley.dev/parley:v9"},
			{value: "image.digest", given: "sha256:" + digits, object: managerKey, path: container + "env.0.value",
				want: "parley.dev/parley:v0.0.0@sha256:" + digits},
			{value: "image.pullPolicy", given: "Always", object: gatewayKey, path: container + "imagePullPolicy",
				want: "Always"},
			{value: "image.pullPolicy", given: "Never", object: podsKey, path: "generation.imagePullPolicy", want: "Never"},
			{value: "global.imagePullSecrets", given: "[{name: s}]", object: managerKey, path: pod + "imagePullSecrets.0.name",
				want: "s"},
			{value: "global.imagePullSecrets", given: "[{name: s}]", object: podsKey,
				path: "workspaces.imagePullSecrets.0.name", want: "s"},
			{value: "global.commonLabels", given: "{team: a}", object: chats, path: "metadata.labels.team", want: "a"},
			{value: "global.commonLabels", given: "{team: a}", object: podsKey, path: "generation.labels.team", want: "a"},
			{value: "global.nodeSelector", given: "{pool: a}", object: gatewayKey, path: pod + "nodeSelector.pool", want: "a"},
			{value: "global.nodeSelector", given: "{pool: a}", object: managerKey, path: pod + "nodeSelector.kubernetes~io/os",
				want: "linux"},
			{value: "global.nodeSelector", given: "{pool: a}", object: podsKey, path: "generation.nodeSelector.pool", want: "a"},
			{value: "global.tolerations", given: "[{key: a}]", object: podsKey, path: "workspaces.tolerations.0.key", want: "a"},
			{value: "global.affinity", given: "{nodeAffinity: {}}", object: managerKey, path: pod + "affinity.nodeAffinity",
				want: map[string]any{}},
			{value: "global.priorityClassName", given: "high", object: gatewayKey, path: pod + "priorityClassName",
				want: "high"},
			{value: "crds.enabled", given: "false", object: chats, path: "kind", want: nil},
			{value: "crds.keep", given: "false", object: chats, path: "metadata.annotations.helm~sh/resource-policy", want: nil},
			{value: "rbac.create", given: "false", object: "ClusterRole/<nil>/parley-manager", path: "kind", want: nil},
			{value: "serviceAccount.create", given: "false", object: "ServiceAccount/parley-system/parley-manager",
				path: "kind", want: nil},
			{value: "namespaces", given: "[a, b]", object: managerKey, path: container + "args.last", want: "--namespaces=a,b"},
			{value: "namespaces", given: "[a, b]", object: gatewayKey, path: container + "args.last", want: "--namespaces=a,b"},
			{value: "manager.shards", given: "3", object: "StatefulSet/parley-system/parley-manager",
				path: container + "env.last.value", want: "3"},
			{value: "manager.shards", given: "3", object: "StatefulSet/parley-system/parley-manager",
				path: container + "args.last", want: "--health-address=:8081"},
			{value: "gateway.service.type", given: "LoadBalancer", object: service, path: "spec.type", want: "LoadBalancer"},
			{value: "gateway.service.port", given: "443", object: service, path: "spec.ports.0.port", want: 443.0},
			{value: "gateway.service.annotations", given: "{a: b}", object: service, path: "metadata.annotations.a", want: "b"},
			{value: "gateway.tls.secretName", given: "tls", object: gatewayKey,
				path: container + "readinessProbe.httpGet.scheme", want: "HTTPS"},
			{value: "gateway.tls.secretName", given: "tls", object: gatewayKey, path: pod + "volumes.0.secret.secretName",
				want: "tls"},
			{value: "gateway.oidc.issuerURL", given: "https://i", object: gatewayKey, path: container + "args.1",
				want: "--oidc-issuer-url=https://i"},
			{value: "gateway.oidc.clientID", given: "c", also: withOIDC, object: gatewayKey, path: container + "args.2",
				want: "--oidc-client-id=c"},
			{value: "gateway.oidc.redirectURL", given: "https://h/ui/callback", also: withOIDC, object: gatewayKey,
				path: container + "args.3", want: "--oidc-redirect-url=https://h/ui/callback"},
			{value: "gateway.oidc.scopes", given: "openid,groups", also: withOIDC, object: gatewayKey,
				path: container + "args.4", want: "--oidc-scopes=openid,groups"},
			{value: "gateway.oidc.secretName", given: "s", also: withOIDC, object: gatewayKey,
				path: pod + "volumes.0.secret.secretName", want: "s"},
			{value: "gateway.oidc.clientSecretKey", given: "k", also: withOIDC, object: gatewayKey,
				path: container + "args.last", want: "--oidc-client-secret-file=/etc/parley/oidc/k"},
			{value: "gateway.oidc.clientSecretKey", given: "''", also: withOIDC, object: gatewayKey,
				path: container + "args.last", want: "--session-key-file=/etc/parley/oidc/session-keys"},
			{value: "gateway.oidc.caKey", given: "ca.crt", also: withOIDC, object: gatewayKey, path: container + "args.last",
				want: "--oidc-ca-file=/etc/parley/oidc/ca.crt"},
			{value: "gateway.ingress.enabled", given: "true", also: withIngress, object: ingress,
				path: "spec.rules.0.http.paths.0.path", want: "/"},
			{value: "gateway.ingress.host", given: "c.example", also: withIngress, object: ingress, path: "spec.rules.0.host",
				want: "c.example"},
			{value: "gateway.ingress.className", given: "nginx", also: withIngress, object: ingress,
				path: "spec.ingressClassName", want: "nginx"},
			{value: "gateway.ingress.tlsSecretName", given: "tls", also: withIngress, object: ingress,
				path: "spec.tls.0.hosts.0", want: "chat.example"},
			{value: "gateway.ingress.annotations", given: "{a: b}", also: withIngress, object: ingress,
				path: "metadata.annotations.a", want: "b"},
			{value: "gateway.httpRoute.enabled", given: "true", also: withRoute, object: route,
				path: "spec.rules.0.timeouts.request", want: "0s"},
			{value: "gateway.httpRoute.parentRefs", given: "[{name: inner}]", also: withRoute, object: route,
				path: "spec.parentRefs.0.name", want: "inner"},
			{value: "gateway.httpRoute.hostnames", given: "[c.example]", also: withRoute, object: route,
				path: "spec.hostnames.0", want: "c.example"},
			{value: "gateway.httpRoute.annotations", given: "{a: b}", also: withRoute, object: route,
				path: "metadata.annotations.a", want: "b"},
			{value: "generation.relayResources", given: "{limits: {cpu: 2}}", object: podsKey,
				path: "generation.relayResources.limits.cpu", want: 2.0},
			{value: "workspaces.anyUser", given: "true", object: podsKey, path: "workspaces.anyUser", want: true},
			{value: "archive.url", given: "file:///a", object: gatewayKey, path: container + "env.last.value",
				want: "file:///a"},
			{value: "gateway.service.port", given: "8443",
				also: "archive: {url: 'file:///a'}\ngateway: {tls: {secretName: tls}}", object: managerKey,
				path: container + "args.last",
				want: "--gateway-url=https://parley-gateway.parley-system.svc:8443"},
			{value: "archive.secretName", given: "b", also: "archive: {url: 'file:///a'}", object: managerKey,
				path: container + "envFrom.0.secretRef.name", want: "b"},
			{value: "proxy.httpProxy", given: "http://p:1", object: managerKey, path: container + "args.last",
				want: "--http-proxy=http://p:1"},
			{value: "proxy.httpsProxy", given: "http://p:1", object: managerKey, path: container + "args.last",
				want: "--https-proxy=http://p:1"},
			{value: "proxy.noProxy", given: ".svc", object: managerKey, path: container + "args.last", want: "--no-proxy=.svc"},
			{value: "caConfigMap", given: "corp/ca.pem", object: managerKey, path: container + "args.last",
				want: "--ca-configmap=corp/ca.pem"},
			{value: "mcp.kagent", given: "true", object: "ClusterRole/<nil>/parley-manager-kagent", path: "kind",
				want: "ClusterRole"},
			{value: "mcp.lifecycle-operator", given: "true", object: "ClusterRole/<nil>/parley-manager-lifecycle-operator",
				path: "kind", want: "ClusterRole"},
			{value: "mcp.services", given: "true", object: "ClusterRole/<nil>/parley-manager-services", path: "kind",
				want: "ClusterRole"},
			{value: "mcp.toolhive", given: "true", object: "ClusterRole/<nil>/parley-manager-toolhive", path: "kind",
				want: "ClusterRole"},
			{value: "networkPolicy.enabled", given: "false", object: "NetworkPolicy/parley-system/parley-gateway", path: "kind",
				want: nil},
			{value: "prometheus.podmonitor.enabled", given: "true", object: monitor, path: "kind", want: "PodMonitor"},
			{value: "prometheus.podmonitor.labels", given: "{release: p}", also: "prometheus: {podmonitor: {enabled: true}}",
				object: monitor,
				path:   "metadata.labels.release", want: "p"},
			{value: "prometheus.rules.enabled", given: "true", object: rule, path: "kind", want: "PrometheusRule"},
			{value: "prometheus.rules.labels", given: "{release: p}", also: "prometheus: {rules: {enabled: true}}", object: rule,
				path: "metadata.labels.release", want: "p"},
			{value: "dashboards.enabled", given: "true", object: dashboard, path: "metadata.labels.grafana_dashboard",
				want: "1"},
			{value: "dashboards.labels", given: "{board: p}", also: "dashboards: {enabled: true}", object: dashboard,
				path: "metadata.labels.board", want: "p"},
			{value: "fairness.enabled", given: "true", object: "FlowSchema/<nil>/parley", path: "kind", want: "FlowSchema"},
		})
}

const digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestEachValueHasItsEffect(t *testing.T) {
	for _, row := range valueRows() {
		t.Run(row.value+" in "+row.object, func(t *testing.T) {
			all := mustRender(t, row.values(t))
			var object any = all[row.object]
			if row.object == podsKey {
				var file any
				text, _ := at(object, "data.pods~yaml").(string)
				if err := yaml.Unmarshal([]byte(text), &file); err != nil {
					t.Fatal(err)
				}
				object = file
			}
			if diff := cmp.Diff(row.want, atLast(object, row.path)); diff != "" {
				t.Errorf("%s at %s (-want +got):\n%s", row.object, row.path, diff)
			}
		})
	}
}

func TestEachValueHasRow(t *testing.T) {
	text, err := os.ReadFile(root + "/charts/parley/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]any{}
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{"dashboards.labels.grafana_dashboard": true}
	for _, row := range valueRows() {
		tested[row.value] = true
	}
	for _, path := range leaves("", defaults) {
		if !tested[path] {
			t.Errorf("the value %s has no row in valueRows", path)
		}
	}
}

// leaves are the paths of the values that are no maps, or empty ones.
func leaves(path string, values map[string]any) (paths []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		inner, ok := values[key].(map[string]any)
		if ok && len(inner) > 0 {
			paths = append(paths, leaves(path+key+".", inner)...)
			continue
		}
		paths = append(paths, path+key)
	}
	return paths
}

// values are those of the row, in YAML.
func (r valueRow) values(t *testing.T) string {
	t.Helper()
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(r.also), &all); err != nil {
		t.Fatal(err)
	}
	var given any
	if err := yaml.Unmarshal([]byte(r.given), &given); err != nil {
		t.Fatal(err)
	}
	to := all
	steps := strings.Split(r.value, ".")
	for _, step := range steps[:len(steps)-1] {
		inner, ok := to[step].(map[string]any)
		if !ok {
			inner = map[string]any{}
			to[step] = inner
		}
		to = inner
	}
	to[steps[len(steps)-1]] = given
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// atLast is as at, but the step "last" is the last element of a list.
func atLast(object any, path string) any {
	before, after, found := strings.Cut(path, ".last")
	if !found {
		return at(object, path)
	}
	list, _ := at(object, before).([]any)
	if len(list) == 0 {
		return nil
	}
	if after == "" {
		return list[len(list)-1]
	}
	return at(list[len(list)-1], strings.TrimPrefix(after, "."))
}
