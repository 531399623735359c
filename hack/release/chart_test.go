// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// stampAPI is served from Kubernetes 1.36 on.
const stampAPI = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

// objects are what is installed, by kind, namespace and name.
type objects map[string]map[string]any

// render renders the chart with values in YAML.
func render(values, namespace string, apis ...string) (objects, error) {
	o := options{root: root}
	c, err := o.chart()
	if err != nil {
		return nil, err
	}
	return renderChart(c, values, namespace, apis...)
}

func renderChart(c *chart.Chart, values, namespace string, apis ...string) (objects, error) {
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, apis...)
	top, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: "parley", Namespace: namespace}, capabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, top)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(file, ".yaml") {
			all.WriteString("\n---\n" + rendered[file])
		}
	}
	return parse(all.Bytes())
}

func mustRender(t *testing.T, values string, apis ...string) objects {
	t.Helper()
	all, err := render(values, "parley-system", apis...)
	if err != nil {
		t.Fatalf("rendering with %s: %v", values, err)
	}
	return all
}

func parse(text []byte) (objects, error) {
	all := objects{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		object := map[string]any{}
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, fmt.Errorf("%w:\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		meta, _ := object["metadata"].(map[string]any)
		key := fmt.Sprint(object["kind"], "/", meta["namespace"], "/", meta["name"])
		if all[key] != nil {
			return nil, fmt.Errorf("%s is there twice", key)
		}
		all[key] = object
	}
	return all, nil
}

// built builds a kustomization next to config/, without the namespace, which Helm creates itself.
func overlay(t *testing.T, kustomization string) objects {
	t.Helper()
	dir, err := os.MkdirTemp(root, ".test-") //nolint:usetesting // The kustomization names config/ by relative paths.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := kustomize(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	delete(all, "Namespace/<nil>/parley-system")
	return all
}

func TestChartInstallsWhatKustomizeInstalls(t *testing.T) {
	for name, c := range map[string]struct{ kustomization, values string }{
		"the default": {"resources: [../config/default, ../config/admission/stamp]", ""},
		"shards": {"resources: [../config/default, ../config/admission/stamp]\ncomponents: [../config/sharding]",
			"manager: {shards: 2}"},
		"archives": {"resources: [../config/default, ../config/admission/stamp]\ncomponents: [../config/archive]",
			"archive: {url: 's3://parley-archive?region=eu-central-1'}"},
		"signing in": {"resources: [../config/default, ../config/admission/stamp]\ncomponents: [../config/oidc]",
			"gateway: {oidc: {issuerURL: 'https://login.example.com', clientID: parley, " +
				"redirectURL: 'https://chat.example.com/ui/callback'}}"},
		"fairness": {"resources: [../config/default, ../config/admission/stamp]\ncomponents: [../config/fairness]",
			"fairness: {enabled: true}"},
		"servers of other projects": {"resources: [../config/default, ../config/admission/stamp]\n" +
			"components: [../config/mcp/kagent, ../config/mcp/lifecycle-operator, ../config/mcp/services, " +
			"../config/mcp/toolhive]",
			"mcp: {kagent: true, lifecycle-operator: true, services: true, toolhive: true}"},
		"monitors and rules": {"resources: [../config/default, ../config/admission/stamp, ../config/prometheus]",
			"prometheus: {podmonitor: {enabled: true}, rules: {enabled: true}}"},
	} {
		t.Run(name, func(t *testing.T) {
			want := overlay(t, c.kustomization)
			got := mustRender(t, "image: {tag: dev}\ncrds: {keep: false}\n"+c.values, stampAPI)
			withoutNameLabel(want)
			withoutNameLabel(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kustomize (-) and chart (+):\n%s", diff)
			}
		})
	}
}

// withoutNameLabel removes the label that kustomize gives only to what config/default itself has.
func withoutNameLabel(all objects) {
	for _, object := range all {
		meta, _ := object["metadata"].(map[string]any)
		if labels, ok := meta["labels"].(map[string]any); ok {
			delete(labels, "app.kubernetes.io/name")
			if len(labels) == 0 {
				delete(meta, "labels")
			}
		}
	}
}

func TestManifestsInstallWhatKustomizeInstalls(t *testing.T) {
	o := options{root: root, out: t.TempDir(), version: "v0.1.0", registry: "registry.example/team"}
	i := image{o.registry, o.version, "sha256:" + strings.Repeat("a", 64)}
	if err := o.writeManifests(i); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.out, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	reference := i.reference()
	if got := strings.Count(string(text), reference); got != 3 {
		t.Errorf("the image %s is named %d times in place of 3", reference, got)
	}
	got, err := parse(bytes.ReplaceAll(text, []byte(reference), []byte("parley.dev/parley:dev")))
	if err != nil {
		t.Fatal(err)
	}
	delete(got, "Namespace/<nil>/parley-system")
	if diff := cmp.Diff(overlay(t, "resources: [../config/default]"), got); diff != "" {
		t.Errorf("config/default (-) and install.yaml (+):\n%s", diff)
	}
}

func TestSameSourcesMakeTheSameChart(t *testing.T) {
	var packed [2][]byte
	for i := range packed {
		o := options{root: root, out: t.TempDir(), version: "v0.1.0"}
		if err := o.writeChart(image{"registry.example/team", o.version, "sha256:" + digits}); err != nil {
			t.Fatal(err)
		}
		packed[i] = readFile(t, o.out, "parley-0.1.0.tgz")
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Error("two charts of the same sources differ")
	}
	c, err := loader.LoadArchive(bytes.NewReader(packed[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range c.Raw {
		if !file.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s has the time of a checkout or of the release: %s", file.Name, file.ModTime)
		}
	}
}

func TestChartInstallsIntoAnyNamespace(t *testing.T) {
	all, err := render("gateway: {ingress: {enabled: true, host: chat.example}}", "ai", stampAPI)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if i := bytes.Index(text, []byte("parley-system")); i >= 0 {
		t.Errorf("the namespace parley-system is still named:\n%s", text[max(0, i-300):min(len(text), i+100)])
	}
}

// A PodMonitor selects pods of its own namespace.
func TestMonitorsAndRulesAreInReleaseNamespace(t *testing.T) {
	all, err := render("prometheus: {podmonitor: {enabled: true}, rules: {enabled: true}}", "ai")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"PodMonitor/ai/parley", "PodMonitor/ai/parley-generation", "PrometheusRule/ai/parley"} {
		if all[key] == nil {
			t.Errorf("there is no %s", key)
		}
	}
}

func TestChartBindsRightsInListedNamespacesOnly(t *testing.T) {
	all := mustRender(t, "namespaces: [team-a, team-b]")
	for _, name := range []string{"parley-manager", "parley-gateway"} {
		if all["ClusterRoleBinding/<nil>/"+name] != nil {
			t.Errorf("%s has its rights in the whole cluster", name)
		}
		if all["ClusterRoleBinding/<nil>/"+name+"-cluster"] == nil {
			t.Errorf("%s lacks its rights to cluster-scoped objects", name)
		}
		for _, namespace := range []string{"team-a", "team-b"} {
			binding := all["RoleBinding/"+namespace+"/"+name]
			if diff := cmp.Diff([]any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": "parley-system"}},
				at(binding, "subjects")); diff != "" {
				t.Errorf("RoleBinding %s in %s (-want +got):\n%s", name, namespace, diff)
			}
		}
	}
}

// at is the value at a path such as spec.template.spec.containers.0.image; nil if there is none.
func at(object any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch o := object.(type) {
		case map[string]any:
			object = o[strings.ReplaceAll(step, "~", ".")]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(o) {
				return nil
			}
			object = o[i]
		default:
			return nil
		}
	}
	return object
}

func TestVariableOfManifestIsReplaced(t *testing.T) {
	all := mustRender(t, "manager: {extraEnv: [{name: POD_NAMESPACE, value: other}]}")
	variables, _ := at(all[managerKey], container+"env").([]any)
	values := map[any]any{}
	for _, v := range variables {
		values[at(v, "name")] = at(v, "value")
	}
	if len(values) != len(variables) || values["POD_NAMESPACE"] != "other" {
		t.Errorf("got %v", variables)
	}
}

func TestReleaseDigestIsOfItsOwnTagOnly(t *testing.T) {
	o := options{root: root, out: t.TempDir(), version: "v0.1.0", registry: "registry.example/team"}
	i := image{o.registry, o.version, "sha256:" + digits}
	if err := o.writeChart(i); err != nil {
		t.Fatal(err)
	}
	released, err := loader.Load(filepath.Join(o.out, "parley-0.1.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	for values, want := range map[string]string{"": i.reference(),
		"image: {tag: v0.1.1}": "registry.example/team/parley:v0.1.1"} {
		all, err := renderChart(released, values, "parley-system")
		if err != nil {
			t.Fatal(err)
		}
		if got := at(all[managerKey], container+"image"); got != want {
			t.Errorf("with %q the image is %v, want %s", values, got, want)
		}
	}
}

func TestManagersOptionsOmitWhatItRefuses(t *testing.T) {
	all := mustRender(t, "global: {priorityClassName: system-cluster-critical, "+
		"commonLabels: {app.kubernetes.io/component: x, team: a}}")
	text, _ := at(all[podsKey], "data.pods~yaml").(string)
	if strings.Contains(text, "system-") || strings.Contains(text, "component") || !strings.Contains(text, "team: a") {
		t.Errorf("got %s", text)
	}
}

func TestShardsHaveNoStrategyOfDeployments(t *testing.T) {
	all := mustRender(t, "manager: {shards: 2, strategy: {type: RollingUpdate}}")
	if got := at(all["StatefulSet/parley-system/parley-manager"], "spec.strategy"); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestWrongValuesAreRejected(t *testing.T) {
	for values, says := range map[string]string{
		"manger: {}":                                 "additional properties 'manger' not allowed",
		"manager: {replicaCount: two}":               "/manager/replicaCount",
		"image: {digest: abc}":                       "/image/digest",
		"namespaces: [Team A]":                       "/namespaces/0",
		"gateway: {ingress: {enabled: true}}":        "/gateway/ingress/host",
		"gateway: {httpRoute: {enabled: true}}":      "/gateway/httpRoute/parentRefs",
		"manager: {extraArgs: [verbose]}":            "/manager/extraArgs/0",
		"global: {imagePullSecrets: [registry]}":     "/global/imagePullSecrets/0",
		"generation: {resources: {memory: 1Gi}}":     "/generation/resources",
		"workspaces: {relayResources: {limits: {}}}": "'relayResources' not allowed",
	} {
		if _, err := render(values, "parley-system"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: want %q, got %v", values, says, err)
		}
	}
}
