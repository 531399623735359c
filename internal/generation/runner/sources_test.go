// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/skills"
	"parley.dev/parley/test/modelserver"
)

func says(text string) modelserver.Script {
	return modelserver.Script{
		Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say(text)}}}}}
}

func instructions(name, key string) v1alpha1.InstructionsSource {
	return v1alpha1.InstructionsSource{ConfigMapKeyRef: v1alpha1.ConfigMapKeyReference{Name: name, Key: key}}
}

// asked is the body of the last request.
func (p *pod) asked() string {
	requests := p.models.Requests()
	return string(requests[len(requests)-1].Body)
}

func TestInstructionsAreReadAnewForEachStep(t *testing.T) {
	t.Parallel()
	p := startPod(t, says("Fine."), nil)
	rules := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "rules"},
		Data: map[string]string{"a": "Rhyme.", "b": "Be brief."}}
	create(t, rules)
	c := p.newChat("c", func(s *v1alpha1.ChatSpec) {
		s.SystemPrompt = "You are a poet."
		s.ParentRef = &v1alpha1.ChatReference{Name: "parent"}
		optional := instructions("absent", "x")
		optional.Optional = true
		s.InstructionsFrom = []v1alpha1.InstructionsSource{instructions("rules", "b"), optional, instructions("rules", "a")}
	})
	c.ask("one", "hello")
	c.commit(c.result(), "")
	if body := p.asked(); !strings.Contains(body,
		`You are a poet.\n\nBe brief.\n\nRhyme.\n\nAnother agent gave you this task`) {
		t.Errorf("the model was asked %s", body)
	}
	if got := p.wire.requests("get configmaps"); got != 2 {
		t.Errorf("%d reads of ConfigMaps", got)
	}
	rules.Data["a"] = "Never rhyme."
	if err := cluster.Client.Update(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	c.ask("two", "hello")
	c.result()
	if body := p.asked(); !strings.Contains(body, `Be brief.\n\nNever rhyme.`) {
		t.Errorf("the model was asked %s", body)
	}
}

func TestMissingInstructionsSayWhatToCreate(t *testing.T) {
	t.Parallel()
	p := startPod(t, says("Fine."), nil)
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "rules"},
		Data: map[string]string{"a": "x"}})
	for name, from := range map[string]v1alpha1.InstructionsSource{"absent": instructions("absent", "a"),
		"no-key": instructions("rules", "b")} {
		c := p.newChat(name, func(s *v1alpha1.ChatSpec) {
			s.InstructionsFrom = []v1alpha1.InstructionsSource{instructions("rules", "a"), from}
		})
		c.ask(name+"-u", "hello")
		e := c.failure(v1alpha1.ErrorConfigMapNotFound)
		want := map[string]string{
			"absent": `ConfigMap absent, key "a", which chat absent names in instructionsFrom, ` +
				`cannot be used: it does not exist. Create it`,
			"no-key": `ConfigMap rules, key "b", which chat no-key names in instructionsFrom, ` +
				`cannot be used: it has no key "b". Create it`,
		}[name]
		if !strings.HasPrefix(e.Text(), want) {
			t.Errorf("the message is %s", e.Text())
		}
	}
	if n := len(p.models.Requests()); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
}

// learns lets the models of the pod read the skills of chats that have no workspace.
func learns(_ *pod, o *runner.Options) {
	texts := sources.New(sources.Options{Client: o.Client, Now: time.Now})
	o.Tools = tools.NewRegistry(skills.Tools(skills.Options{OfChat: texts.SkillsOf,
		Has: func(*v1alpha1.Chat) bool { return false }})...)
}

func skillIn(name string, items ...v1alpha1.SkillItem) v1alpha1.SkillSource {
	return v1alpha1.SkillSource{ConfigMapRef: v1alpha1.ConfigMapReference{Name: name}, Items: items}
}

func TestTheIndexOfSkillsFollowsTheInstructions(t *testing.T) {
	t.Parallel()
	p := startPod(t, says("Fine."), learns)
	forms := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "forms"}, Data: map[string]string{
		"SKILL.md": "---\nname: pdf\ndescription: Fills in forms.\n---\nSecret of the trade.", "rules": "Be brief."}}
	create(t, forms)
	absent := skillIn("absent")
	absent.Optional = true
	c := p.newChat("c", func(s *v1alpha1.ChatSpec) {
		s.SystemPrompt = "You are a clerk."
		s.ParentRef = &v1alpha1.ChatReference{Name: "parent"}
		s.InstructionsFrom = []v1alpha1.InstructionsSource{instructions("forms", "rules")}
		s.SkillsFrom = []v1alpha1.SkillSource{absent, skillIn("forms")}
	})
	c.ask("one", "hello")
	c.commit(c.result(), "")
	body := p.asked()
	if want := `You are a clerk.\n\nBe brief.\n\n` + encoded(t, skill.OfChat); !strings.Contains(body, want) ||
		!strings.Contains(body, `\n- configmap/pdf: Fills in forms.\n\nAnother agent gave you this task`) ||
		strings.Contains(body, "Secret") || !strings.Contains(body, `"read_skill_file"`) {
		t.Errorf("the model was asked %s", body)
	}
	forms.Data["SKILL.md"] = "---\nname: pdf\ndescription: Fills in all forms.\n---\n"
	if err := cluster.Client.Update(t.Context(), forms); err != nil {
		t.Fatal(err)
	}
	c.ask("two", "hello")
	c.result()
	if body := p.asked(); !strings.Contains(body, `- configmap/pdf: Fills in all forms.\n`) {
		t.Errorf("the model was asked %s", body)
	}
}

// encoded is a text as it stands in the body of a request.
func encoded(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(raw), `"`)
}

func TestAModelThatMayNotReadSkillsIsToldOfNone(t *testing.T) {
	t.Parallel()
	p := startPod(t, says("Fine."), learns)
	c := p.newChat("c", func(s *v1alpha1.ChatSpec) {
		s.SkillsFrom = []v1alpha1.SkillSource{skillIn("absent")}
		s.Tools = &v1alpha1.ChatTools{Deny: []v1alpha1.ToolPattern{"*"}}
	})
	c.ask("one", "hello")
	c.result()
	if body := p.asked(); strings.Contains(body, "kill") {
		t.Errorf("the model was asked %s", body)
	}
}

func TestMissingSkillsSayWhatToCreate(t *testing.T) {
	t.Parallel()
	p := startPod(t, says("Fine."), learns)
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "rules"},
		Data: map[string]string{"a": "x"}})
	for name, want := range map[string]string{
		"absent": `ConfigMap absent, which chat absent names in skillsFrom, cannot be used: it does not exist. Create it`,
		"rules": `ConfigMap rules, key "SKILL.md", which chat rules names in skillsFrom, cannot be used: it has no key ` +
			`"SKILL.md". Create it`,
	} {
		c := p.newChat(name, func(s *v1alpha1.ChatSpec) { s.SkillsFrom = []v1alpha1.SkillSource{skillIn(name)} })
		c.ask(name+"-u", "hello")
		if e := c.failure(v1alpha1.ErrorConfigMapNotFound); !strings.HasPrefix(e.Text(), want) {
			t.Errorf("the message is %s", e.Text())
		}
	}
	if n := len(p.models.Requests()); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
}

func TestTroubleWithTheApiServerDelaysInstructionsAndLosesNone(t *testing.T) {
	t.Parallel()
	p := startPod(t, says("Fine."), nil)
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "rules"},
		Data: map[string]string{"a": "Rhyme."}})
	failures := 0
	refuse := answers(http.StatusForbidden, metav1.StatusReasonForbidden)
	p.wire.mu.Lock()
	p.wire.fault = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(r) != "get configmaps" || failures == 2 {
			return nil, nil
		}
		if failures++; failures == 1 {
			return cutBefore(r, next)
		}
		return refuse(r, next)
	}
	p.wire.mu.Unlock()
	c := p.newChat("c", func(s *v1alpha1.ChatSpec) {
		s.InstructionsFrom = []v1alpha1.InstructionsSource{instructions("rules", "a")}
	})
	c.ask("one", "hello")
	c.result()
	if body := p.asked(); !strings.Contains(body, "Rhyme.") || failures != 2 {
		t.Errorf("after %d failures the model was asked %s", failures, body)
	}
}

func TestAnAttemptThatIsInterruptedWhileItReadsInstructionsCallsNobody(t *testing.T) {
	t.Parallel()
	p := startPod(t, says("Fine."), nil)
	p.wire.mu.Lock()
	p.wire.fault = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(r) == "get configmaps" {
			return cutBefore(r, next)
		}
		return nil, nil
	}
	p.wire.mu.Unlock()
	c := p.newChat("c", func(s *v1alpha1.ChatSpec) {
		s.InstructionsFrom = []v1alpha1.InstructionsSource{instructions("rules", "a")}
	})
	c.ask("one", "hello")
	p.eventually("the instructions are asked for", func() bool { return p.wire.requests("get configmaps") > 0 })
	c.write(interrupt)
	if g := c.result().Spec.Generation; g.Outcome != v1alpha1.OutcomeInterrupted || g.Error != nil {
		t.Errorf("got outcome %s, error %+v", g.Outcome, g.Error)
	}
	if n := len(p.models.Requests()); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
}

func TestFilesReachTheModel(t *testing.T) {
	t.Parallel()
	p := startPod(t, says("Nice."), nil)
	const png = "\x89PNG\r\n\x1a\nrest"
	create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "files"},
		Data:       map[string]string{"note.txt": "from a ConfigMap"}, BinaryData: map[string][]byte{"a.png": []byte(png)},
	})
	c := p.newChat("c", nil)
	file := func(name, mediaType string, f v1alpha1.MessageFile) v1alpha1.MessagePart {
		f.Name, f.MediaType = name, mediaType
		return v1alpha1.MessagePart{Type: v1alpha1.PartFile, File: &f}
	}
	ref := func(key string) v1alpha1.MessageFile {
		return v1alpha1.MessageFile{ConfigMapKeyRef: &v1alpha1.ConfigMapKeyReference{Name: "files", Key: key}}
	}
	create(t, &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "one"},
		Spec: v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: "c"}, Parts: []v1alpha1.MessagePart{
			{Type: v1alpha1.PartText, Text: new("see")},
			file("in.txt", "text/plain", v1alpha1.MessageFile{Data: "aW4gcGxhY2U="}),
			file("note.txt", "text/plain", ref("note.txt")), file("a.png", "image/png", ref("a.png")),
			file("b.png", "image/png", ref("b.png")),
			file("c.png", "image/png", v1alpha1.MessageFile{URL: "https://files.example.com/c.png"}),
		}},
	})
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "one"}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: "one", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	if got := textOf(t, c.result()); got != "Nice." {
		t.Errorf("got %s", got)
	}
	body := p.asked()
	for _, want := range []string{
		`in place`, `from a ConfigMap`, `data:image/png;base64,iVBORw0KGgpyZXN0`,
		`cannot be shown: ConfigMap files: it has no key \"b.png\".`,
		`host files.example.com is none that files may be fetched from, and the provider of the model fetches no files of this type itself.`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if got := p.wire.requests("get configmaps"); got != 1 {
		t.Errorf("%d reads of one ConfigMap", got)
	}
}
