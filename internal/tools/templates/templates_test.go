// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

var (
	goTemplate = template{Template{Name: "go", Image: "golang:1.27", Requests: map[string]string{"cpu": "500m"},
		Limits: map[string]string{"memory": "2Gi"}, Annotations: map[string]string{
			v1beta1.AnnotationDescription: "A Go toolchain.\u001b[31m",
			v1beta1.AnnotationParameters: "- {name: version, default: '1.27', allowed: ['1.26', '1.27'], places: " +
				"[env/GO_VERSION]}\n- {name: who, description: Whom to greet, places: [env/WHO]}"}}, "web"}
	// wrongTemplate has a parameter without a place.
	wrongTemplate = template{Template{Name: "wrong", Annotations: map[string]string{
		v1beta1.AnnotationParameters: "- {name: x}"}}, ""}
)

// template is one of a team.
type template struct {
	Template
	team string
}

// server lists templates as the API server does.
func server(all ...template) Options {
	return Options{List: func(_ context.Context, selector string, most int, _ int64) ([]Template, bool, error) {
		selects, err := labels.Parse(selector)
		if err != nil {
			return nil, false, fmt.Errorf("parsing the selector: %w", err)
		}
		var found []Template
		for _, one := range all {
			if selects.Matches(labels.Set{v1beta1.LabelWorkspaceTemplate: "true", "team": one.team}) {
				found = append(found, one.Template)
			}
		}
		return found[:min(most, len(found))], len(found) > most, nil
	}}
}

// choosing is a chat whose model may choose among the templates with these labels.
func choosing(matchLabels map[string]v1beta1.LabelValue) *v1beta1.Chat {
	return &v1beta1.Chat{Spec: v1beta1.ChatSpec{Workspace: &v1beta1.WorkspaceSource{
		PodTemplateSelector: &v1beta1.WorkspaceTemplateSelector{MatchLabels: matchLabels}}}}
}

// call calls a tool, and returns its result, or the error that the model reads.
func call(t *testing.T, o Options, chat *v1beta1.Chat, name, input string) v1beta1.ToolResult {
	t.Helper()
	results := tools.NewRegistry(Tools(o)...).Execute(t.Context(), &tools.Batch{Chat: chat,
		Calls: []v1beta1.ToolCall{{ID: "1", Name: name, Input: input}}}, nil)
	return results[0]
}

func TestTemplateListMatchesSelectorOfChat(t *testing.T) {
	o := server(wrongTemplate, goTemplate)
	for name, c := range map[string]struct {
		matchLabels map[string]v1beta1.LabelValue
		want        string
	}{
		"all": {nil, `{"templates":[{"name":"go","description":"A Go toolchain.[31m","parameters":["version","who"]},` +
			`{"name":"wrong"}]}`},
		"those of a team": {map[string]v1beta1.LabelValue{"team": "web"}, `{"templates":[{"name":"go",` +
			`"description":"A Go toolchain.[31m","parameters":["version","who"]}]}`},
		"none":                  {map[string]v1beta1.LabelValue{"team": "a"}, `{"templates":[]}`},
		"the mark is no choice": {map[string]v1beta1.LabelValue{v1beta1.LabelWorkspaceTemplate: "false", "team": "a"}, `{"templates":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "list", c.want, call(t, o, choosing(c.matchLabels), "list_templates", "{}").Output)
		})
	}
}

func TestTruncatedTemplateListAsksForNarrowerSelector(t *testing.T) {
	o := Options{List: func(context.Context, string, int, int64) ([]Template, bool, error) {
		return []Template{goTemplate.Template}, true, nil
	}}
	for name, input := range map[string]string{"list_templates": `{}`, "read_template": `{"template":"zig"}`} {
		check.InOrder(t, call(t, o, choosing(nil), name, input).Output, "go",
			"a person has to have spec.workspace.podTemplateSelector")
	}
}

func TestTemplateIsReadWithItsParameters(t *testing.T) {
	got := call(t, server(goTemplate), choosing(nil), "read_template", `{"template":"go"}`)
	want := `{"name":"go","description":"A Go toolchain.[31m","image":"golang:1.27","requests":{"cpu":"500m"},` +
		`"limits":{"memory":"2Gi"},"directory":"/workspace","parameters":[` +
		`{"name":"version","type":"string","default":"1.27","allowed":["1.26","1.27"]},` +
		`{"name":"who","description":"Whom to greet","type":"string"}]}`
	check.Equal(t, "template", want, got.Output)
}

// Security (a hostile model): cannot have two workspaces, by calling create_workspace again, or by a sub-chat. Also
// TestASubChatNamesNoWorkspace of test/admission.
func TestWorkspaceIsCreatedOnce(t *testing.T) {
	o, chat := server(goTemplate), choosing(nil)
	registry := tools.NewRegistry(Tools(o)...)
	first := call(t, o, chat, "create_workspace", `{"template":"go","parameters":[{"name":"who","value":"a \"b\" $(c)"}]}`)
	decided := registry.WorkspaceChange([]v1beta1.ToolResult{first})
	check.Equal(t, "change", &v1beta1.WorkspaceChange{Create: &v1beta1.WorkspaceTemplateReference{Name: "go",
		Parameters: []v1beta1.WorkspaceParameter{{Name: "who", Value: `a "b" $(c)`}}}}, decided)
	chat.Status.Workspace = &v1beta1.ChatWorkspaceStatus{PodTemplateRef: decided.Create}
	again := call(t, o, chat, "create_workspace", `{"template":"go","parameters":[{"name":"who","value":"a \"b\" $(c)"}]}`)
	if !strings.Contains(again.Output, `"exists":true`) || registry.WorkspaceChange([]v1beta1.ToolResult{again}) != nil {
		t.Errorf("called again: %+v", again)
	}
	other := call(t, o, chat, "create_workspace", `{"template":"go","parameters":[{"name":"who","value":"b"}]}`)
	if !other.IsError || !strings.Contains(other.Output, "has a workspace from template go already") {
		t.Errorf("another one: %+v", other)
	}
}

// Security (a hostile model): cannot choose a template that its chat does not select, nor see a template's environment.
// Also TestOfTemplatesModelsLearnWhatIsForThem of internal/generation/workspaces; TestTemplateOutsideSelectorIsNotFound
// of controllers/workspace.
func TestInvalidTemplateChoiceErrorListsValidOptions(t *testing.T) {
	o := server(goTemplate, wrongTemplate)
	named := &v1beta1.Chat{Spec: v1beta1.ChatSpec{Workspace: &v1beta1.WorkspaceSource{
		PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}}}
	for name, c := range map[string]struct {
		chat        *v1beta1.Chat
		input, says string
	}{
		"no such template":       {choosing(nil), `{"template":"rust"}`, `no template "rust"; the templates are: go, wrong`},
		"of another team":        {choosing(map[string]v1beta1.LabelValue{"team": "a"}), `{"template":"go"}`, "the templates are: none"},
		"a wrong template":       {choosing(nil), `{"template":"wrong"}`, "it has no places"},
		"a value is missing":     {choosing(nil), `{"template":"go"}`, `parameter "who" has no default`},
		"a value is not allowed": {choosing(nil), `{"template":"go","parameters":[{"name":"version","value":"2"}]}`, "1.26, 1.27"},
		"no such parameter":      {choosing(nil), `{"template":"go","parameters":[{"name":"os","value":"x"}]}`, "version, who"},
		"two values":             {choosing(nil), `{"template":"go","parameters":[{"name":"who","value":"a"},{"name":"who","value":"b"}]}`, "has two values"},
		"a value that is too long": {choosing(nil), `{"template":"go","parameters":[{"name":"who","value":"` +
			strings.Repeat(`\u0001`, 1024) + `"}]}`, "the values are too long"},
		"a chat that names one": {named, `{"template":"go"}`, "has no podTemplateSelector"},
		"a chat without any":    {&v1beta1.Chat{}, `{"template":"go"}`, "has no podTemplateSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, o, c.chat, "create_workspace", c.input)
			if !got.IsError || !strings.Contains(got.Output, c.says) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestFailedTemplateListReturnsErrorWithoutWorkspaceChange(t *testing.T) {
	o := Options{List: func(context.Context, string, int, int64) ([]Template, bool, error) {
		return nil, false, errors.New("podtemplates is forbidden")
	}}
	got := call(t, o, choosing(nil), "create_workspace", `{"template":"go"}`)
	if !got.IsError || !strings.Contains(got.Output, "podtemplates is forbidden") {
		t.Errorf("got %+v", got)
	}
	got.Output = `{"template":"go"}`
	if change := tools.NewRegistry(Tools(o)...).WorkspaceChange([]v1beta1.ToolResult{got}); change != nil {
		t.Errorf("an error decides %+v", change)
	}
}

func TestToolsAreOfferedIfModelMayChoose(t *testing.T) {
	all := Tools(Options{})
	registry := tools.NewRegistry(all...)
	check.Equal(t, "tools", len(all), len(registry.Suited(choosing(nil))))
	check.Equal(t, "tools without a workspace", 0, len(registry.Suited(&v1beta1.Chat{})))
	for _, tool := range all {
		check.Equal(t, tool.Definition().Name+" is repeatable", true, tool.Definition().Repeatable)
	}
}
