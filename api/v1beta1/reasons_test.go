// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// constants are the values of the file's constants of the type; without one, those of no type. One that is a
// conversion, such as EventReason(ReasonPromptRejected), has the value that the name says.
func constants(t *testing.T, file, typeName string) (values []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		switch value := spec.Values[0].(type) {
		case *ast.BasicLit:
			declared, _ := spec.Type.(*ast.Ident)
			if typeName == "" && declared == nil || declared != nil && declared.Name == typeName {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, text)
			}
		case *ast.CallExpr:
			if converted, ok := value.Fun.(*ast.Ident); ok && converted.Name == typeName {
				name := strings.TrimPrefix(value.Args[0].(*ast.Ident).Name, "Reason")
				values = append(values, strings.TrimPrefix(name, "Request"))
			}
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constant of type %s", file, typeName)
	}
	return values
}

// inTables are the words in code spans of a column, in all tables of the page that have it.
func inTables(t *testing.T, page, column string) (words []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/" + page)
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "|") {
			at = -1
			continue
		}
		cells[0] = strings.TrimPrefix(cells[0], "| ")
		if i := slices.Index(cells, column); i >= 0 && at < 0 {
			at = i
		}
		if at >= 0 && at < len(cells) {
			for _, span := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(cells[at], -1) {
				words = append(words, span[1])
			}
		}
	}
	return words
}

func TestThePagesNameEveryReasonAndNoOther(t *testing.T) {
	const reason, event, action, failure = "ConditionReason", "EventReason", "EventAction", "ErrorReason"
	errors := constants(t, "error_types.go", failure)
	ofChat := constants(t, "chat_conditions.go", reason)
	for name, c := range map[string]struct {
		file, typeName string
		page, column   string
		// also are other constants that the page may name.
		also []string
	}{
		"conditions of a Chat": {"chat_conditions.go", reason, "chat.md", "reason",
			slices.Concat(errors, constants(t, "provider_tools_types.go", "ProviderToolReason"),
				constants(t, "kubernetes_types.go", "KubernetesReason"))},
		"conditions of a ChatMessage":    {"chatmessage_conditions.go", reason, "chatmessage.md", "reason", ofChat},
		"conditions of ChatModelConfigs": {"chatmodelconfig_conditions.go", reason, "chatmodelconfig.md", "reason", nil},
		"conditions of quotas":           {"chatquota_conditions.go", reason, "chatquota.md", "reason", nil},
		"conditions of a Workspace":      {"workspace_conditions.go", reason, "../how-to/workspaces.md", "reason", nil},
		"conditions of a ToolApproval": {"toolapproval_conditions.go", reason, "../how-to/steering.md", "reason",
			constants(t, "turn_types.go", "CallsCanceledReason")},
		"condition types of a Chat":           {"chat_conditions.go", "", "chat.md", "condition", nil},
		"condition types of ChatModelConfigs": {"chatmodelconfig_conditions.go", "", "chatmodelconfig.md", "condition", nil},
		"reasons of MCP servers":              {"mcp_account_types.go", "MCPServerReason", "../how-to/mcp.md", "reason", nil},
		"errors":                              {"error_types.go", failure, "errors.md", "reason", nil},
		"Events":                              {"events.go", event, "observability.md", "reason", nil},
		"actions of Events":                   {"events.go", action, "observability.md", "action", nil},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := map[string]bool{}, map[string]bool{}
			for _, value := range constants(t, c.file, c.typeName) {
				want[value] = true
			}
			for _, word := range inTables(t, c.page, c.column) {
				got[word] = true
			}
			for value := range maps.Keys(want) {
				if !got[value] {
					t.Errorf("docs/reference/%s does not name %s", c.page, value)
				}
			}
			for word := range maps.Keys(got) {
				if !want[word] && !slices.Contains(c.also, word) {
					t.Errorf("docs/reference/%s names %s, which is no constant", c.page, word)
				}
			}
		})
	}
}
