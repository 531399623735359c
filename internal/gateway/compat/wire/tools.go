// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
)

// maxDescription is the most characters of a tool's description.
const maxDescription = 4096

// KindFunction is the type of a tool that its client runs.
const KindFunction = "function"

// Function is a tool that a client offers.
type Function struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters are a JSON schema, which may be empty.
	Parameters json.RawMessage `json:"parameters"`
}

// Tools converts the tools that a client offers; nil if the request has no such field. Of returns the type of a tool and
// its function.
func Tools[T any](offered []T, of func(*T) (kind string, f *Function), omitted map[string]bool) ([]v1alpha1.ClientTool,
	error) {
	if offered == nil {
		return nil, nil
	}
	tools := []v1alpha1.ClientTool{}
	for i := range offered {
		kind, f := of(&offered[i])
		param := fmt.Sprintf("tools[%d]", i)
		switch {
		case omitted[kind]:
			continue
		case kind != KindFunction:
			return nil, Unsupported(param, "tools of type %s cannot be honoured: functions alone", kind)
		}
		tool, err := f.tool(param)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

func (f *Function) tool(param string) (v1alpha1.ClientTool, error) {
	tool := v1alpha1.ClientTool{Name: f.Name, Description: f.Description}
	if len([]rune(f.Description)) > maxDescription {
		return tool, Invalid(param, "the description of function %s has more than %d characters", f.Name, maxDescription)
	}
	if IsSet(f.Parameters) {
		var object map[string]any
		if json.Unmarshal(f.Parameters, &object) != nil {
			return tool, Invalid(param, "the parameters of function %s are no JSON schema of an object", f.Name)
		}
		tool.InputSchema = &runtime.RawExtension{Raw: f.Parameters}
	}
	return tool, nil
}
