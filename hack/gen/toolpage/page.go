// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package toolpage

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley.dev/parley/hack/gen/markdown"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/internal/tools/kubernetes"
	"parley.dev/parley/internal/tools/planning"
	"parley.dev/parley/internal/tools/skills"
	"parley.dev/parley/internal/tools/subagents"
	"parley.dev/parley/internal/tools/templates"
	"parley.dev/parley/internal/tools/workspace"
)

// builtIn are the tools that Parley brings.
func builtIn() []tools.Tool {
	all := append(workspace.Tools(workspace.Options{}), templates.Tools(templates.Options{})...)
	all = append(all, skills.Tools(skills.Options{})...)
	all = append(all, subagents.Tools(subagents.Options{})...)
	all = append(all, planning.Tools()...)
	all = append(all, kubernetes.Tools(nil)...)
	all = append(all, advisor.Tool{}, builtin.CurrentTime{}, builtin.WaitAgent{})
	slices.SortFunc(all, func(a, b tools.Tool) int { return cmp.Compare(a.Definition().Name, b.Definition().Name) })
	return all
}

// uses says whether a tool may be called in a mode.
var uses = map[tools.Use]string{tools.Free: "yes", tools.WithApproval: "with approval", tools.Forbidden: "no"}

// Render returns the page.
func Render() ([]byte, error) { return render(builtIn()) }

func render(all []tools.Tool) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, intro, tools.ResultLimit(1)>>10, tools.MaxResultBytes>>10)
	rows := make([][]string, 0, len(all))
	for _, tool := range all {
		d := tool.Definition()
		rows = append(rows, []string{fmt.Sprintf("[`%s`](#%s)", d.Name, d.Name), markdown.Cell(d.Reference.Offered),
			uses[d.Plan], uses[d.Explore]})
	}
	markdown.Table(&b, []string{"Tool", "Offered to", "in mode Plan", "in mode Explore"}, rows)
	for _, tool := range all {
		if err := section(&b, tool.Definition()); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// markup is what a text has in Markdown for its readers to look up more.
var markup = regexp.MustCompile("`| \\(\\[[^]]*\\]\\([^)]*\\)\\)")

// Script returns the tools as a module for the gateway's page: their names, with the chats that they are offered to.
func Script() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprint(&b, "// Copyright The Parley Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n"+
		"// The tools that Parley brings, each with the chats that it is offered to. Made by make generate.\n\n"+
		"/** @type {Object<string, string>} */\nexport const TOOLS = {\n")
	for _, tool := range builtIn() {
		d := tool.Definition()
		fmt.Fprintf(&b, "  %s: %q,\n", d.Name, markup.ReplaceAllString(d.Reference.Offered, ""))
	}
	fmt.Fprint(&b, "};\n")
	return b.Bytes(), nil
}

// section is what the page says of one tool.
func section(w io.Writer, d tools.Definition) error {
	fmt.Fprintf(w, "\n## %s\n\n%s\n", d.Name, d.Description)
	rows := argumentRows("", d.InputSchema)
	if len(rows) == 0 {
		fmt.Fprint(w, "\nIt has no arguments.\n")
	} else {
		markdown.Table(w, []string{"Argument", "Type", "Default", "Bounds", "What it is"}, rows)
	}
	fields, err := resultRows(d.Reference.Result)
	if err != nil {
		return fmt.Errorf("the result of %s: %w", d.Name, err)
	}
	markdown.Table(w, []string{"Result", "Type", "What it is"}, fields)
	items(w, "Errors and failures", d.Reference.Errors)
	items(w, "Limits", d.Reference.Limits)
	return nil
}

func items(w io.Writer, title string, all []string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n\n", title)
	for _, item := range all {
		fmt.Fprintf(w, "- %s\n", item)
	}
}

// argumentRows are those of the properties of an object, and of what is within them; the required ones come first.
func argumentRows(path string, schema arguments.Schema) (rows [][]string) {
	properties, _ := schema["properties"].(arguments.Schema)
	required := arguments.Required(schema)
	names := slices.SortedFunc(maps.Keys(properties), func(a, b string) int {
		return cmp.Or(position(required, a)-position(required, b), cmp.Compare(a, b))
	})
	for _, name := range names {
		property, _ := properties[name].(arguments.Schema)
		fallback := "—"
		if slices.Contains(required, name) {
			fallback = "required"
		} else if value, ok := property["default"]; ok {
			fallback = fmt.Sprintf("`%v`", value)
		}
		description, _ := property["description"].(string)
		rows = append(rows, []string{
			"`" + path + name + "`", typeName(property), fallback, bounds(property), markdown.Cell(description),
		})
		items, _ := property["items"].(arguments.Schema)
		rows = append(rows, argumentRows(path+name+"[].", items)...)
	}
	return rows
}

// position sorts what is required by its place in the list, before all that is not.
func position(required []string, name string) int {
	if at := slices.Index(required, name); at >= 0 {
		return at
	}
	return len(required)
}

func typeName(property arguments.Schema) string {
	kind, _ := property["type"].(string)
	return cmp.Or(map[string]string{"string": "text", "array": "list"}[kind], kind, "any")
}

// bounds are those of a property, in words.
func bounds(property arguments.Schema) string {
	if values, ok := property["enum"].([]string); ok {
		return "`" + strings.Join(values, "`, `") + "`"
	}
	for _, of := range []struct{ least, most, unit string }{
		{"minimum", "maximum", ""}, {"minLength", "maxLength", " characters"}, {"minItems", "maxItems", " entries"},
	} {
		least, hasLeast := property[of.least]
		most, hasMost := property[of.most]
		switch {
		case hasLeast && hasMost:
			return fmt.Sprintf("%v to %v%s", least, most, of.unit)
		case hasMost:
			return fmt.Sprintf("at most %v%s", most, of.unit)
		case hasLeast:
			return fmt.Sprintf("at least %v%s", least, of.unit)
		}
	}
	return "—"
}
