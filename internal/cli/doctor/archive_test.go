// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

const marker = "MARKER"

// planted is a value of a type with a marker in each text.
func planted(t reflect.Type, depth int) any {
	if depth > 12 {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return planted(t.Elem(), depth)
	case reflect.Slice:
		return []any{planted(t.Elem(), depth+1)}
	case reflect.Map:
		return map[string]any{marker: planted(t.Elem(), depth+1)}
	case reflect.Struct:
		object := map[string]any{}
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			inner := planted(field.Type, depth+1)
			below, isObject := inner.(map[string]any)
			switch {
			case name == "" && isObject:
				maps.Copy(object, below)
			case name != "-":
				object[name] = inner
			}
		}
		return object
	}
	return marker
}

// paths are those of the fields with a marker.
func paths(value any, at string) (found []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			found = append(found, paths(inner, at+"."+name)...)
		}
	case []any:
		for _, inner := range v {
			found = append(found, paths(inner, at)...)
		}
	case string:
		if v == marker {
			found = []string{at[1:]}
		}
	}
	return found
}

// archivedTypes are the Go types of resources.
var archivedTypes = map[string]reflect.Type{
	"chats": reflect.TypeFor[v1beta1.Chat](), "chatmessages": reflect.TypeFor[v1beta1.ChatMessage](),
	"chatmodelconfigs": reflect.TypeFor[v1beta1.ChatModelConfig](), "chatclasses": reflect.TypeFor[v1beta1.ChatClass](),
	"toolapprovals": reflect.TypeFor[v1beta1.ToolApproval](), "workspaces": reflect.TypeFor[v1beta1.Workspace](),
	"chatquotas": reflect.TypeFor[v1beta1.ChatQuota](), "events": reflect.TypeFor[corev1.Event](),
}

// texts are fields in which there may be content or keys.
var texts = []string{"annotations", "apiKey", "baseURL", "comment", "content", "contentHash", "data", "env", "headers",
	"input", "labels", "lastReply", "output", "parts", "preamble", "preview", "prompt", "proxy", "requiresAction",
	"settings", "summary", "systemPrompt", "title", "tools"}

// TestArchivesHaveNoTexts plants a marker in every field.
func TestArchivesHaveNoTexts(t *testing.T) {
	for name, kind := range archivedTypes {
		for _, r := range Archived() {
			if path.Base(r.Path) != name {
				continue
			}
			object, _ := planted(kind, 0).(map[string]any)
			for _, kept := range paths(r.Select(object), "") {
				for segment := range strings.SplitSeq(kept, ".") {
					if slices.Contains(texts, segment) {
						t.Errorf("%s: an archive has %s", name, kept)
					}
				}
			}
		}
	}
}

func TestListedFieldsExist(t *testing.T) {
	for _, r := range Archived() {
		kind, isKnown := archivedTypes[path.Base(r.Path)]
		if !isKnown {
			continue
		}
		object, _ := planted(kind, 0).(map[string]any)
		missingIn(t, r.Path, treeOf(r.Fields), object)
	}
}

func missingIn(t *testing.T, at string, f fields, value any) {
	t.Helper()
	if list, ok := value.([]any); ok {
		value = list[0]
	}
	object, _ := value.(map[string]any)
	for name, below := range f {
		if _, has := object[name]; !has {
			t.Errorf("%s has no field %s", at, name)
		}
		if len(below) > 0 {
			missingIn(t, at+"."+name, below, object[name])
		}
	}
}

func TestContainersKeepKnownSettingsAlone(t *testing.T) {
	pod := map[string]any{}
	check.OK(t, json.Unmarshal([]byte(`{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "manager", "args":
		["--https-proxy=http://u:p@proxy", "--namespaces=team", "--header", "secret", "--verbose", "-x=secret"], "env": [
		{"name": "GOGC", "value": "50"}, {"name": "HTTPS_PROXY", "value": "secret"}]}]}}`), &pod))
	for _, r := range Archived() {
		if strings.HasSuffix(r.Path, "SYSTEM/pods") {
			kept, err := json.Marshal(r.Select(pod))
			check.OK(t, err)
			check.Equal(t, "kept", `{"metadata":{"name":"p"},"spec":{"containers":[{"args":["--namespaces=team","--verbose"],`+
				`"env":[{"name":"GOGC","value":"50"}],"name":"manager"}]}}`, string(kept))
		}
	}
}

func TestObjectsOfOtherNamesAreOmitted(t *testing.T) {
	for _, r := range Archived() {
		if path.Base(r.Path) == "customresourcedefinitions" {
			for name, want := range map[string]bool{"chats.parley.dev": true, "others.example.com": false} {
				got := r.Select(map[string]any{"metadata": map[string]any{"name": name}})
				check.Equal(t, name, want, got != nil)
			}
		}
	}
}
