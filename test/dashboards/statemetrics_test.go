// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"parley.dev/parley/test/kit/testcluster"
)

// unmeasured are the kinds that kube-state-metrics is not to read, and why.
var unmeasured = map[string]string{
	"ChatMessage":   "as many as people and models say, and who lists them reads them all",
	"ChatDebugStep": "holds prompts and replies, and goes within days",
	"ToolApproval":  "is done a moment after it was created",
}

func TestEveryKindIsMeasuredOrLeftOut(t *testing.T) {
	config := readStateMetrics(t)
	for _, kind := range kinds() {
		at := slices.IndexFunc(config.Spec.Resources,
			func(r stateResource) bool { return r.GroupVersionKind.Kind == kind })
		if _, left := unmeasured[kind]; left == (at >= 0) {
			t.Errorf("%s: kube-state-metrics reads it: %v; it is left out: %v", kind, at >= 0, left)
		}
	}
}

// schemas are those of the kinds, as they are installed.
func schemas(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(testcluster.Path("config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no definitions: %v", err)
	}
	of := map[string]map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition := parse(t, string(text))
		kind, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
		version := lookUp(definition, []string{"spec", "versions"}).([]any)[0]
		schema, _ := lookUp(version, []string{"schema", "openAPIV3Schema"}).(map[string]any)
		schema["properties"].(map[string]any)["metadata"] = parse(t, `properties: {name: {type: string},
			namespace: {type: string}, uid: {type: string}, creationTimestamp: {type: string}}`)
		of[kind] = schema
	}
	return of
}

// within is the schema of what a path leads to from there, through the elements of lists; nil if it leads nowhere.
func within(schema map[string]any, path []string) map[string]any {
	for _, part := range path {
		if items, ok := schema["items"].(map[string]any); ok {
			schema = items
		}
		schema, _ = lookUp(schema, []string{"properties", part}).(map[string]any)
	}
	return schema
}

func TestEveryMetricPathIsAnAPIField(t *testing.T) {
	all := schemas(t)
	for _, r := range readStateMetrics(t).Spec.Resources {
		for i := range r.Metrics {
			metric := &r.Metrics[i]
			for _, fault := range faults(metric, all[r.GroupVersionKind.Kind]) {
				t.Errorf("%s_%s: %s", r.MetricNamePrefix, metric.Name, fault)
			}
		}
	}
}

// faults are what would make the metric of a kind with that schema say nothing, too much, or something else.
func faults(metric *stateMetric, schema map[string]any) []string {
	values := metric.values()
	at := within(schema, values.Path)
	field := within(at, values.ValueFrom)
	if field == nil {
		return []string{fmt.Sprintf("%v %v is no field", values.Path, values.ValueFrom)}
	}
	var found []string
	switch metric.Each.Type {
	case "Gauge":
		found = gaugeFaults(values, at, field)
	case "StateSet":
		if states := asStrings(field["enum"]); !slices.Equal(sorted(states), sorted(values.List)) {
			found = append(found, fmt.Sprintf("it has the states %v, the API %v", values.List, states))
		}
	}
	if metric.Help == "" {
		found = append(found, "it does not say what it is")
	}
	return found
}

// gaugeFaults are those of a number. Of an object, kube-state-metrics looks at every field, and into those that are
// objects.
func gaugeFaults(values stateValues, at, field map[string]any) []string {
	var found []string
	if field["type"] == "object" || field["type"] == "array" || values.NilIsZero && len(values.ValueFrom) > 0 {
		found = append(found, fmt.Sprintf("it makes a sample of each field of %v", values.Path))
	}
	properties, _ := at["properties"].(map[string]any)
	for name := range properties {
		if len(values.ValueFrom) > 0 && within(at, append([]string{name}, values.ValueFrom...)) != nil {
			found = append(found, fmt.Sprintf("%s has a field %v, too", name, values.ValueFrom))
		}
	}
	return found
}

// names are fields whose values people choose once for an object, or a provider for a model.
var names = []string{"name", "namespace", "uid", "model"}

func TestLabelsOfMetricsAreNamesAndEnums(t *testing.T) {
	all := schemas(t)
	for _, r := range readStateMetrics(t).Spec.Resources {
		root := all[r.GroupVersionKind.Kind]
		boundLabels(t, root, r.LabelsFromPath)
		for i := range r.Metrics {
			values := r.Metrics[i].values()
			boundLabels(t, within(root, values.Path), values.LabelsFromPath)
		}
	}
}

// boundLabels checks that the labels of what has that schema have no more values than there are objects.
func boundLabels(t *testing.T, at map[string]any, labels map[string][]string) {
	t.Helper()
	for label, path := range labels {
		leaf := within(at, path)
		_, enum := leaf["enum"]
		_, pattern := leaf["pattern"]
		currency := fmt.Sprint(leaf["minLength"], leaf["maxLength"]) == "3 3"
		if leaf == nil || !enum && !pattern && !currency && !slices.Contains(names, path[len(path)-1]) {
			t.Errorf("label %s is %v, which is no name, enum or currency: %v", label, path, leaf)
		}
	}
}

func asStrings(list any) []string {
	items, _ := list.([]any)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, item.(string))
	}
	return texts
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

func TestMetricsOfObjects(t *testing.T) {
	const ready = `conditions: [{type: Ready, status: "False", reason: Overloaded, message: why,
    lastTransitionTime: "2026-11-23T10:00:00Z"}]`
	for _, c := range []struct{ name, kind, content, want string }{
		{"a chat that nobody has seen", "Chat", `spec: {title: never a label}`, `
parley_chat_info{uid} 1
parley_chat_spec_suspended{} 0
parley_chat_status_archived{} 0
parley_chat_status_cache_read_tokens{} 0
parley_chat_status_cache_write_tokens{} 0
parley_chat_status_input_tokens{} 0
parley_chat_status_messages{} 0
parley_chat_status_output_tokens{} 0`},
		{"a chat that waits for people", "Chat", `
spec: {suspend: true, mode: Plan}
status:
  observedGeneration: 1
  phase: RequiresAction
  model: large
  chatClass: {name: coder, uid: u, generation: 1}
  history: {version: 7, head: m, length: 7}
  turn: {message: m, index: 6, startedAt: "2026-11-23T10:00:00.123456Z"}
  usage: {inputTokens: 9007199254740991, outputTokens: 5, reasoningTokens: 2, cacheReadTokens: 7, totalTokens: 12}
  cost: [{currency: USD, microUnits: 123456789012}, {currency: EUR, microUnits: 1}]
  requiresAction: {message: m, deadline: "2026-11-23T11:00:00Z"}
  wait: {for: Approval, reason: RequiresAction, since: "2026-11-23T10:00:00Z"}
  expiresAt: "2026-11-24T10:00:00Z"
  ` + ready, `
parley_chat_info{chat_class="coder",mode="Plan",model="large",uid} 1
parley_chat_spec_suspended{} 1
parley_chat_status_action_deadline{} 1795431600
parley_chat_status_archived{} 0
parley_chat_status_cache_read_tokens{} 7
parley_chat_status_cache_write_tokens{} 0
parley_chat_status_condition{condition="Ready",reason="Overloaded",status="False"} 1
parley_chat_status_condition{condition="Ready",reason="Overloaded",status="True"} 0
parley_chat_status_condition{condition="Ready",reason="Overloaded",status="Unknown"} 0
parley_chat_status_cost_micro_units{currency="EUR"} 1
parley_chat_status_cost_micro_units{currency="USD"} 123456789012
parley_chat_status_expires{} 1795514400
parley_chat_status_input_tokens{} 9007199254740991
parley_chat_status_messages{} 7
parley_chat_status_output_tokens{} 5
parley_chat_status_phase{phase="Error"} 0
parley_chat_status_phase{phase="Interrupting"} 0
parley_chat_status_phase{phase="RequiresAction"} 1
parley_chat_status_phase{phase="Running"} 0
parley_chat_status_phase{phase="Waiting"} 0
parley_chat_status_turn_started{} 1795428000
parley_chat_status_wait_started{for="Approval"} 1795428000`},
		{"a model", "ChatModelConfig", `
spec: {provider: openai-compatible, baseURL: 'http://model.invalid', model: large, default: true}
status: {contextLimit: 9}`, `
parley_chatmodelconfig_info{model="large",provider="openai-compatible",uid} 1
parley_chatmodelconfig_spec_default{} 1
parley_chatmodelconfig_spec_disabled{} 0
parley_chatmodelconfig_status_context_limit_tokens{} 9`},
		{"a class", "ChatClass", `{spec: {default: true}}`, `
parley_chatclass_spec_default{} 1`},
		{"a quota that says nothing of sub-chats", "ChatQuota", `spec: {generating: {chats: 0}}`, `
parley_chatquota_spec_generating_chats{} 0`},
		{"a workspace", "Workspace", `
spec: {neededAt: "2026-11-23T10:00:00.123456Z", chatRef: {name: c}, source: {podTemplateRef: {name: go}}}
status: {phase: Ready}`, `
parley_workspace_info{chat="c",template="go",uid} 1
parley_workspace_spec_needed{} 1795428000
parley_workspace_spec_suspended{} 0
parley_workspace_status_phase{phase="Failed"} 0
parley_workspace_status_phase{phase="Pending"} 0
parley_workspace_status_phase{phase="Ready"} 1
parley_workspace_status_phase{phase="Starting"} 0
parley_workspace_status_phase{phase="Stopped"} 0
parley_workspace_status_phase{phase="Stopping"} 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := object(t, c.kind, "o", c.content)
			o.SetNamespace(cluster.Namespace(t, "measured"))
			admit(t, o)
			if got := strings.Join(measured(t, o), "\n"); got != strings.TrimSpace(c.want) {
				t.Errorf("it makes\n%s\nwant%s", got, c.want)
			}
		})
	}
}

// measured is what kube-state-metrics makes of the object, without what every object has: its name, its uid, and
// when it was created.
func measured(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	for _, r := range readStateMetrics(t).Spec.Resources {
		if r.GroupVersionKind.Kind != o.GetKind() {
			continue
		}
		delete(r.LabelsFromPath, "name")
		delete(r.LabelsFromPath, "namespace")
		created := 0
		lines := slices.DeleteFunc(r.samples(t, o), func(line string) bool {
			if strings.HasPrefix(line, r.MetricNamePrefix+"_created{} ") {
				created++
				return true
			}
			return false
		})
		if created != 1 {
			t.Errorf("it tells %d times when it was created", created)
		}
		for i := range lines {
			lines[i] = strings.Replace(lines[i], `="`+string(o.GetUID())+`"`, "", 1)
		}
		return lines
	}
	t.Fatalf("kube-state-metrics does not read a %s", o.GetKind())
	return nil
}
