// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"parley.dev/parley/hack/gen/markdown"
)

const api = "api/v1beta1"

// constant is one of the API, with its comment.
type constant struct{ name, value, typeName, doc string }

// constantTable is a table of constants.
type constantTable struct {
	heading, intro string
	// file and typeName select the constants. The type is empty for those without one.
	file, typeName string
	// column is the heading of their values.
	column string
}

// conditionsOf are the tables of a kind whose conditions are in the file. The intro is for the reasons.
func conditionsOf(file, intro string) []constantTable {
	const common = "In addition to `Ready`, `Reconciling` and `Stalled`, which every kind has:"
	file = filepath.Join(api, file)
	return []constantTable{
		{"Conditions", common, file, "", "condition"},
		{"Reasons of conditions", intro, file, "ConditionReason", "reason"},
	}
}

// chatReasons are the tables of a Chat.
var chatReasons = append(conditionsOf("chat_conditions.go",
	"The reasons of [errors](errors.md) surface in Ready (False) and Stalled (True)."),
	constantTable{"Waits", "`status.wait.for` is one of these.", api + "/chat_wait_types.go", "WaitFor", "value"},
	constantTable{"Reasons of cancelled calls", "`status.turn.callsCanceledReason`, and `callsCanceledReasonBefore` of " +
		"the message that follows, is one of these.", api + "/turn_types.go", "CallsCanceledReason", "value"},
	constantTable{"Causes of approvals", "`approvalCause` names the reason if a call waits that no list of tools names.",
		api + "/part_types.go", "ApprovalCause", "value"},
	constantTable{"Reasons of MCPServersUnavailable", "", api + "/mcp_account_types.go", "MCPServerReason", "reason"},
	constantTable{"Reasons of ProviderToolsUnavailable", "", api + "/provider_tools_types.go", "ProviderToolReason",
		"reason"},
	constantTable{"Reasons of KubernetesUnavailable", "", api + "/kubernetes_types.go", "KubernetesReason", "reason"})

// Events renders the page of the Events that the manager makes.
func Events() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, api+"/events.go", "Events")
	b.WriteString("\nEvents are about a Chat. `GenerationPodRejected` is about a ChatClass if one of its spare pods is " +
		"refused. The note of a warning contains what is wrong and what to do. Success makes no Event. `Expired` and " +
		"`Waiting` are Normal. If a turn fails, the reason is that of the [error](errors.md).\n")
	err := writeConstants(&b, []constantTable{
		{"Reasons", "", api + "/events.go", "EventReason", "reason"},
		{"Actions", "", api + "/events.go", "EventAction", "action"},
	})
	return b.Bytes(), err
}

// writeConstants writes the tables that have rows.
func writeConstants(w io.Writer, tables []constantTable) error {
	for _, table := range tables {
		all, err := constants(table.file)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, c := range all {
			if c.typeName == table.typeName {
				rows = append(rows, []string{markdown.Code(c.value), markdown.Prose(c.doc)})
			}
		}
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n## %s\n", table.heading)
		if table.intro != "" {
			fmt.Fprintf(w, "\n%s\n", table.intro)
		}
		markdown.Table(w, []string{table.column, "meaning"}, rows)
	}
	return nil
}

// subject is the beginning of a comment that names the constant, as Go wants it.
var subject = regexp.MustCompile(`^\w+ (of an? \w+ )?(surfaces in |surfaces |means that |is |ends )`)

// meaning is the comment of a constant without its name.
func meaning(doc string) string {
	doc = subject.ReplaceAllStringFunc(doc, func(found string) string {
		if strings.HasSuffix(found, "ends ") {
			return "ends "
		}
		return ""
	})
	return strings.ToUpper(doc[:min(1, len(doc))]) + doc[min(1, len(doc)):]
}

// constants are the string constants of a file, in their order.
func constants(file string) (all []constant, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("reading constants: %w", err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		c := constant{name: spec.Names[0].Name, doc: meaning(spec.Doc.Text())}
		if declared, ok := spec.Type.(*ast.Ident); ok {
			c.typeName = declared.Name
		}
		switch value := spec.Values[0].(type) {
		case *ast.BasicLit:
			c.value, err = strconv.Unquote(value.Value)
			if value.Kind != token.STRING || err != nil {
				return true
			}
		case *ast.CallExpr: // A conversion of a constant that is named like its value.
			c.typeName = value.Fun.(*ast.Ident).Name
			name := value.Args[0].(*ast.Ident).Name
			c.value = strings.TrimPrefix(strings.TrimPrefix(name, "Reason"), "Request")
		default:
			return true
		}
		all = append(all, c)
		return true
	})
	return all, nil
}
