// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed archive.yaml
var archiveFile []byte

// Resource is a resource of which a support archive has some fields.
type Resource struct {
	// Path in the API, with NAMESPACE in place of that of the chats, and SYSTEM of that of the manager.
	Path string `json:"path"`
	// Selector selects objects by their labels, and Names, a regular expression, by their names.
	Selector string   `json:"selector"`
	Names    string   `json:"names"`
	Fields   []string `json:"fields"`

	tree fields
}

// archived is what a support archive has.
var archived = func() (parsed struct {
	All, Variables, Arguments []string
	Resources                 []Resource
}) {
	if err := yaml.UnmarshalStrict(archiveFile, &parsed); err != nil {
		panic(fmt.Sprintf("reading archive.yaml: %v", err)) // Cannot happen: it is a constant.
	}
	for i := range parsed.Resources {
		parsed.Resources[i].tree = treeOf(parsed.All, parsed.Resources[i].Fields)
	}
	return parsed
}()

// Archived are the resources of a support archive.
func Archived() []Resource { return archived.Resources }

// fields are names of fields with those below each. An empty one stands for all.
type fields map[string]fields

func treeOf(lists ...[]string) fields {
	all := fields{}
	for _, path := range slices.Concat(lists...) {
		at := all
		for name := range strings.SplitSeq(path, ".") {
			if at[name] == nil {
				at[name] = fields{}
			}
			at = at[name]
		}
	}
	return all
}

// of returns the fields of a value.
func (f fields) of(value any) any {
	if len(f) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, below := range f {
			if inner, has := v[name]; has {
				kept[name] = below.of(inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(v))
		for _, item := range v {
			kept = append(kept, f.of(item))
		}
		return kept
	}
	return nil
}

// Select returns the fields of an object that an archive has; nil for an object that it does not have.
func (r *Resource) Select(object map[string]any) map[string]any {
	kept, _ := r.tree.of(object).(map[string]any)
	meta, _ := kept["metadata"].(map[string]any)
	if !regexp.MustCompile(r.Names).MatchString(fmt.Sprint(meta["name"])) {
		return nil
	}
	spec, _ := kept["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		if container, ok := c.(map[string]any); ok {
			redact(container)
		}
	}
	return kept
}

// redact removes variables and arguments of a container that are not listed. Those of proxies, for example, have keys.
func redact(container map[string]any) {
	variables, _ := container["env"].([]any)
	container["env"] = slices.DeleteFunc(variables, func(v any) bool {
		variable, _ := v.(map[string]any)
		return !slices.Contains(archived.Variables, fmt.Sprint(variable["name"]))
	})
	args, _ := container["args"].([]any)
	container["args"] = slices.DeleteFunc(args, func(arg any) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(fmt.Sprint(arg), "-"), "=")
		return !slices.Contains(archived.Arguments, name)
	})
}
