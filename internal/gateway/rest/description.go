// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
)

// openAnswers lets answers and events have fields that the description does not name: clients leave them out. What
// requests have is closed, so that a misspelt field is an error.
func openAnswers(described *huma.OpenAPI) {
	seen := map[*huma.Schema]bool{}
	for _, item := range described.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if op == nil {
				continue
			}
			for _, answer := range op.Responses {
				for _, content := range answer.Content {
					open(described.Components.Schemas, content.Schema, seen)
				}
			}
		}
	}
}

func open(registry huma.Registry, s *huma.Schema, seen map[*huma.Schema]bool) {
	if s != nil && s.Ref != "" {
		s = registry.SchemaFromRef(s.Ref)
	}
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	if s.AdditionalProperties == false {
		s.AdditionalProperties = nil
	}
	for _, property := range s.Properties {
		open(registry, property, seen)
	}
	for _, one := range s.OneOf {
		open(registry, one, seen)
	}
	open(registry, s.Items, seen)
}

// Description is the description of the operations as docs/gateway-openapi.json has it.
func Description(openAPI *huma.OpenAPI) ([]byte, error) {
	raw, err := json.Marshal(openAPI)
	if err != nil {
		return nil, fmt.Errorf("describing the operations: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", " "); err != nil {
		return nil, fmt.Errorf("describing the operations: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
