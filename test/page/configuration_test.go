// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/test/kit/browser"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// published is the schema of a spec as the API server publishes it.
func published(t *testing.T, resource string) any {
	t.Helper()
	raw, err := os.ReadFile(testcluster.Path("config", "crd", "bases", "parley.dev_"+resource+".yaml"))
	check.OK(t, err)
	var definition apiextensions.CustomResourceDefinition
	check.OK(t, yaml.Unmarshal(raw, &definition))
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

const configurations = "/v1beta1/namespaces/demo/configurations"

func configured(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.answer("GET "+configurations, http.StatusOK, fields{"kinds": []fields{
		{"kind": "ChatModelConfig", "resource": "chatmodelconfigs", "create": true, "objects": []fields{
			{"name": "large", "summary": "claude, Anthropic", "default": true, "ready": "False", "reason": "SecretNotFound",
				"message": "there is no Secret keys"}}},
		{"kind": "ChatClass", "resource": "chatclasses", "objects": []fields{
			{"name": "ops", "summary": "For work on clusters.", "ready": "True"}}},
		{"kind": "ChatQuota", "resource": "chatquotas", "refused": "you may not list chatquotas", "objects": []fields{}}}})
	for _, resource := range []string{"chatmodelconfigs", "chatclasses"} {
		s.answer("GET /v1beta1/configurations/"+resource+"/schema", http.StatusOK, published(t, resource))
	}
	s.answer("GET /v1beta1/namespaces/demo/templates", http.StatusOK, fields{"templates": []fields{
		{"name": "go", "description": "A Go toolchain."}}})
	s.answer("GET "+configurations+"/chatmodelconfigs/large", http.StatusOK, fields{"update": true, "object": fields{
		"metadata": fields{"name": "large", "resourceVersion": "7", "generation": 1, "uid": "u"},
		"spec": fields{"provider": "anthropic", "model": "claude", "default": true, "maxOutputTokens": 4096,
			"apiKey": fields{"secretKeyRef": fields{"name": "keys", "key": "k"}}}}})
	s.answer("GET "+configurations+"/chatclasses/ops", http.StatusOK, fields{"object": fields{
		"metadata": fields{"name": "ops", "resourceVersion": "8"}, "spec": fields{"description": "For work on clusters.",
			"firstPrompts": []string{"What is broken?", "What is new?"}}}})
	return s
}

// field focuses the control with that label, and selects what is in it.
const field = `(label) => { const control = [...document.querySelectorAll('#config label')]
	.find((l) => l.firstChild.data.startsWith(label)).querySelector('input, textarea, select'); control.focus();
	control.select?.(); }`

func TestModelIsCheckedAndChangedByForm(t *testing.T) {
	s := configured(t)
	p := s.opened(t)
	p.Click("[data-act=configure]", "")
	p.Sees("#config-body", "large default · not ready: SecretNotFound")
	p.Sees("#config-body", "you may not list chatquotas")
	p.Sees("#config-body", "A Go toolchain.")
	hasNoBarrier(p)
	p.Click("#config-body a", "large")
	p.Sees("#config-body", "there is no Secret keys")
	p.Sees("#config-body pre", "maxOutputTokens: 4096")
	p.Do("(" + field + ")('Model (required)')")
	p.Write("claude-2")
	p.Sees("#config-body pre", "model: claude-2")
	hasNoBarrier(p)
	pictured(p, "page-configuration", "a form")

	const puts = "PUT " + configurations + "/chatmodelconfigs/large"
	s.answer(puts, http.StatusBadRequest, refusal("Invalid", "spec.model: Invalid value"))
	p.Click("#config-body button", "Check")
	p.Sees("#config-body [role=status]", "spec.model: Invalid value")
	if asked := s.wasAsked(puts); asked["dryRun"] != "true" {
		t.Errorf("asked for was %v", asked)
	}
	s.answer(puts, http.StatusOK, fields{})
	p.Click("#config-body button", "Check")
	p.Sees("#config-body [role=status]", "The API server accepts it. Nothing is saved.")
	p.Click("#config-body button", "Save")
	p.Sees("#config-body", "Templates of workspaces")
	const want = `{"resourceVersion":"7","spec":{"apiKey":{"secretKeyRef":{"key":"k","name":"keys"}},"default":true,` +
		`"maxOutputTokens":4096,"model":"claude-2","provider":"anthropic"}}`
	if got := encoded(s.wasAsked(puts)); got != want {
		t.Errorf("saved was %s", got)
	}
}

func TestModelIsCreatedByForm(t *testing.T) {
	s := configured(t)
	p := s.opened(t)
	p.Click("[data-act=configure]", "")
	p.Click("#config-body a", "New ChatModelConfig")
	p.Sees("#config-body button", "Save")
	for label, words := range map[string]string{"Name": "small", "Model (required)": "haiku: 3"} {
		p.Do("(" + field + ")(" + encoded(label) + ")")
		p.Write(words)
	}
	p.Do(`{ const s = [...document.querySelectorAll('#config label')].find((l) => l.firstChild.data.startsWith('Provider'))
		.querySelector('select'); s.selectedIndex = 2; s.dispatchEvent(new Event('change', { bubbles: true })); }`)
	p.Sees("#config-body pre", `model: "haiku: 3"`)
	p.Click("#config-body button", "Save")
	p.Sees("#config-body", "Templates of workspaces")
	if got := encoded(s.wasAsked("PUT " + configurations + "/chatmodelconfigs/small")); got !=
		`{"spec":{"model":"haiku: 3","provider":"anthropic"}}` {
		t.Errorf("saved was %s", got)
	}
}

func TestClassIsShownToReaderAndTried(t *testing.T) {
	s := configured(t)
	s.answer("GET /v1beta1/namespaces/demo/chatclasses", http.StatusOK, fields{"chatClasses": []fields{{"name": "ops"}}})
	p := s.opened(t)
	p.Click("[data-act=configure]", "")
	p.Click("#config-body a", "ops")
	p.Sees("#config-body", "You may not change it: nothing here is saved.")
	p.Sees("#config-body pre", "- \"What is broken?\"")
	p.Click("#config-body button", "Try it in a chat")
	p.Until("the class is chosen", "[...document.querySelectorAll('dialog select')].some((s) => s.value === 'ops')")
}

func TestUntouchedFieldsAreSavedAsTheyWere(t *testing.T) {
	p := configured(t).opened(t)
	server := fields{"name": "s", "command": []string{"srv", "--prefix", "", " x ", "a\rb"}, "env": []fields{{"name": "E", "value": ""}}}
	for resource, spec := range map[string]fields{
		"chatmodelconfigs": {"provider": "openai", "model": "m", "temperature": 0, "disabled": false,
			"headers":         []fields{{"name": "X", "value": "a  b "}},
			"providerOptions": fields{"openai": fields{}, "openaiCompatible": fields{"extraBody": fields{"a": []any{1, nil, "x"}}}},
			"fallbacks":       []fields{{"name": "other"}}, "structuredOutput": "OfTomorrow"},
		"chatclasses": {"description": "one\r\ntwo", "preamble": " \ttabs\n", "firstPrompts": []string{"Explain: ", "Why?"},
			"defaults": fields{"mcpServers": []fields{server}, "tools": fields{"allow": []string{}, "approval": []string{"execute"}}}},
		"chatquotas": {"generating": fields{"chats": 0}, "storedFiles": "10Gi"},
	} {
		script := fmt.Sprintf(`import(new URL('js/form.js', document.baseURI).href).then(({ fields }) => {
			const form = fields(%s, %s);
			document.body.append(...form.nodes);
			for (let closed; (closed = document.querySelector('details:not([open])'));) closed.open = true;
			return new Promise((resolve) => setTimeout(resolve)).then(() => JSON.stringify(form.read()));
		})`, encoded(published(t, resource)), encoded(spec))
		var read any
		check.OK(t, json.Unmarshal([]byte(browser.Eval[string](p, script)), &read))
		if got, want := encoded(read), encoded(spec); got != want {
			t.Errorf("%s is read as\n%s, not\n%s", resource, got, want)
		}
	}
}

func TestConfigurationKeepsWhatIsNotSaved(t *testing.T) {
	s := configured(t)
	p := s.opened(t)
	p.Click("[data-act=configure]", "")
	p.Click("#config-body a", "large")
	p.Sees("#config-body button", "Try it in a chat")
	p.Do("(" + field + ")('Model (required)')")
	p.Write("claude-2")
	p.Key("Enter") // saves nothing
	p.Gone("#config-body button", "Try it in a chat")
	p.Do("history.back()")
	p.Sees("#config-body li", "SecretNotFound · changes are not saved")
	p.Click("#config-body a", "large")
	p.Sees("#config-body pre", "model: claude-2")

	// The status was written meanwhile, not the spec.
	const large = configurations + "/chatmodelconfigs/large"
	const puts, reads = "PUT " + large, "GET " + large
	metadata := fields{"name": "large", "resourceVersion": "9", "generation": 1, "uid": "u"}
	s.answer(reads, http.StatusOK, fields{"update": true, "object": fields{"metadata": metadata}})
	refusals := 1
	s.mu.Lock()
	s.answers[puts] = func() (int, any) {
		if refusals--; refusals >= 0 {
			return http.StatusConflict, refusal("Conflict", "it was modified")
		}
		return http.StatusOK, fields{}
	}
	s.mu.Unlock()
	p.Click("#config-body button", "Save")
	p.Sees("#toasts", "ChatModelConfig large is saved.")
	if got := s.wasAsked(puts)["resourceVersion"]; got != "9" || s.times(puts) != 2 {
		t.Errorf("it was saved %d times, the last with version %v", s.times(puts), got)
	}
}

func TestManifestIsReadAsItWasWritten(t *testing.T) {
	value := fields{"plain": "a b/c-1", "yes": "no", "number": 1.5, "digits": "1e3", "none": nil, "empty": []any{},
		"odd: key": "- x # y", "tab": "a\n\tb", "break": "a\u2028b\n",
		"hidden": "a\u202eb\u200b\U000e0041", "control": "\u007f\u0085\uffff", "small": 1e-7,
		"lines": "One.\n\n  Two: \"x\"\nThree.", "ended": "One.\nTwo.\n", "twice": "One.\n\n", "indented": " a\nb",
		"list": []any{"a\nb", []any{"x"}, fields{"k": "on", "l": true}}}
	p := configured(t).opened(t)
	p.Do("import(new URL('js/yaml.js', document.baseURI).href).then(({ yaml }) => { " +
		"document.body.dataset.made = yaml(" + encoded(value) + "); })")
	p.Until("it is written", "Boolean(document.body.dataset.made)")
	made := browser.Eval[string](p, "document.body.dataset.made")
	check.Lacks(t, made, "\u202e", "\u200b", "\U000e0041")
	var read any
	check.OK(t, yaml.Unmarshal([]byte(made), &read))
	if got, want := encoded(read), encoded(value); got != want {
		t.Errorf("read was %s, written %s", got, want)
	}
}
