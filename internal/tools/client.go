// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/text/jsonschema"
)

// OfClient are the tools that a client of the chat runs and that the chat allows, in their order.
func OfClient(spec *v1alpha1.ChatTools) (all []Definition) {
	if spec == nil {
		return nil
	}
	for i := range spec.Client {
		if client := &spec.Client[i]; toolpolicy.Allows(spec, client.Name) {
			all = append(all, Definition{Name: client.Name, Description: client.Description, InputSchema: schemaOf(client),
				client: client})
		}
	}
	return all
}

// schemaOf is the schema that the chat gives, or that of an object without properties.
func schemaOf(client *v1alpha1.ClientTool) map[string]any {
	var schema map[string]any
	if given := client.InputSchema; given != nil {
		schema, _ = jsonschema.Object(given.Raw) // SchemaError reports what is no object.
	}
	if schema == nil {
		schema = map[string]any{}
	}
	if _, ok := schema["type"]; !ok {
		schema["type"] = "object"
	}
	return schema
}

// SchemaError is why a tool of the chat's client cannot be offered; nil: it can. A provider refuses a request because
// of one invalid schema, with all its other tools.
func (d *Definition) SchemaError() error {
	if d.client == nil || d.client.InputSchema == nil {
		return nil
	}
	if err := jsonschema.Check(string(d.client.InputSchema.Raw)); err != nil {
		return err
	}
	if d.InputSchema["type"] != "object" {
		return errors.New("its type must be object")
	}
	return nil
}
