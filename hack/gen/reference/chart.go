// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley.dev/parley/hack/gen/markdown"
)

// values is a JSON Schema of the values of the chart.
type valueSchema struct {
	Type       any
	Enum       []string
	Properties map[string]*valueSchema
	Items      *valueSchema
	Ref        string `json:"$ref"`
}

// Chart renders the page of the chart's values from their file, its comments and the schema.
func Chart() ([]byte, error) {
	text, err := os.ReadFile("charts/parley/values.yaml")
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}
	schema := &valueSchema{}
	if text, err = os.ReadFile("charts/parley/values.schema.json"); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, schema); err != nil {
		return nil, fmt.Errorf("reading the schema of the values: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, "charts/parley/values.yaml", "Values of the chart")
	b.WriteString("\n[How to install the chart](../how-to/helm.md).\n")
	rows := valueRows("", document.Content[0], schema)
	markdown.Table(&b, []string{"value", "type", "default", "meaning"}, rows)
	return b.Bytes(), nil
}

// valueRows are the values below a path. One with a comment and values below it has a row of its own.
func valueRows(path string, node *yaml.Node, schema *valueSchema) (rows [][]string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name, below := path+key.Value, schema.property(key.Value)
		comment := strings.ReplaceAll(key.HeadComment, "# ", "")
		nested := value.Kind == yaml.MappingNode && len(value.Content) > 0
		switch {
		case !nested:
			rows = append(rows, []string{markdown.Code(name), below.name(), defaultOf(value), markdown.Prose(comment)})
			continue
		case comment != "":
			rows = append(rows, []string{markdown.Code(name), "object", "", markdown.Prose(comment)})
		}
		rows = append(rows, valueRows(name+".", value, below)...)
	}
	return rows
}

func (s *valueSchema) property(name string) *valueSchema {
	if s == nil {
		return nil
	}
	return s.Properties[name]
}

// name is the type of a value.
func (s *valueSchema) name() string {
	switch {
	case s == nil:
		return ""
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Ref != "":
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	case s.Items != nil:
		return "list of " + s.Items.name()
	}
	return fmt.Sprint(s.Type)
}

// defaultOf is a value in one line.
func defaultOf(value *yaml.Node) string {
	if value.Kind == yaml.ScalarNode {
		if value.Value == "" {
			return "`\"\"`"
		}
		return markdown.Code(value.Value)
	}
	if value.Kind == yaml.SequenceNode {
		return "`[]`"
	}
	return "`{}`"
}
