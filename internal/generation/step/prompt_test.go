// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/skills"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

func instructions(name, key string) v1beta1.InstructionsSource {
	return v1beta1.InstructionsSource{ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: name, Key: key}}
}

func skillIn(name string) v1beta1.SkillSource {
	return v1beta1.SkillSource{ConfigMapRef: v1beta1.ConfigMapReference{Name: name}}
}

// newTaught is a chat whose model can read skills, in a namespace with the ConfigMap "rules".
func newTaught(t *testing.T, change func(*v1beta1.ChatSpec)) *talk {
	t.Helper()
	c := newTalk(t, replies(modelserver.Say("Fine.")), change)
	c.options.Tools = tools.NewRegistry(skills.Tools(skills.Options{OfChat: c.options.Sources.SkillsOf,
		Has: func(*v1beta1.Chat) bool { return false }})...)
	c.ConfigMaps = map[string]*apiclient.ConfigMap{"rules": {Data: map[string]string{"a": "Rhyme.", "b": "Be brief."}},
		"forms": {Data: map[string]string{"SKILL.md": "---\nname: pdf\ndescription: Fills in forms.\n---\nSecret of the trade."}}}
	return c
}

func TestInstructionsAndSkillsAreReadForEachStep(t *testing.T) {
	c := newTaught(t, func(s *v1beta1.ChatSpec) {
		s.SystemPrompt, s.ParentRef = "You are a poet.", &v1beta1.ChatReference{Name: "parent"}
		absent, none := instructions("absent", "x"), skillIn("absent")
		absent.Optional, none.Optional = true, true
		s.InstructionsFrom = []v1beta1.InstructionsSource{instructions("rules", "b"), absent, instructions("rules", "a")}
		s.SkillsFrom = []v1beta1.SkillSource{none, skillIn("forms")}
	})
	c.ask("hello")
	check.InOrder(t, c.LastBody(), `You are a poet.\n\nBe brief.\n\nRhyme.\n\n`+strings.Trim(jsonOf(t, skill.OfChat), `"`),
		`\n- configmap/pdf: Fills in forms.\n\nAnother agent gave you this task`)
	check.Contains(t, c.LastBody(), `"read_skill_file"`)
	check.Lacks(t, c.LastBody(), "Secret")
	check.Equal(t, "reads of ConfigMaps", 4, int(c.Asked.Load()))
	c.ConfigMaps["rules"].Data["a"] = "Never rhyme."
	c.ConfigMaps["forms"].Data["SKILL.md"] = "---\nname: pdf\ndescription: Fills in all forms.\n---\n"
	c.ask("hello")
	check.InOrder(t, c.LastBody(), `Be brief.\n\nNever rhyme.`, `- configmap/pdf: Fills in all forms.\n`)
}

func TestModelDeniedSkillsIsToldOfNone(t *testing.T) {
	c := newTaught(t, func(s *v1beta1.ChatSpec) {
		s.SkillsFrom = []v1beta1.SkillSource{skillIn("absent")}
		s.Tools = &v1beta1.ChatTools{Deny: []v1beta1.ToolPattern{"*"}}
	})
	c.ask("hello")
	check.Lacks(t, c.LastBody(), "kill")
}

func TestMissingConfigMapSaysWhatToCreate(t *testing.T) {
	from := func(source v1beta1.InstructionsSource) v1beta1.ChatSpec {
		return v1beta1.ChatSpec{InstructionsFrom: []v1beta1.InstructionsSource{instructions("rules", "a"), source}}
	}
	for want, spec := range map[string]v1beta1.ChatSpec{
		`ConfigMap absent, key "a", which chat c names in instructionsFrom, cannot be used: it does not exist. Create it`: from(
			instructions("absent", "a")),
		`ConfigMap rules, key "c", which chat c names in instructionsFrom, cannot be used: it has no key "c". Create it`: from(
			instructions("rules", "c")),
		`ConfigMap absent, which chat c names in skillsFrom, cannot be used: it does not exist. Create it`: {
			SkillsFrom: []v1beta1.SkillSource{skillIn("absent")}},
		`ConfigMap rules, key "SKILL.md", which chat c names in skillsFrom, cannot be used: it has no key "SKILL.md". Create it`: {
			SkillsFrom: []v1beta1.SkillSource{skillIn("rules")}},
	} {
		c := newTaught(t, func(s *v1beta1.ChatSpec) { *s = spec })
		e := c.ask("hello").Spec.Generation.Error
		check.Equal(t, "the reason", v1beta1.ErrorConfigMapNotFound, e.Reason)
		check.Contains(t, e.Text(), want)
		check.Equal(t, "calls of the model", 0, len(c.Bodies("")))
	}
}

func TestUnreadableStoredFileIsRetried(t *testing.T) {
	chat := chattest.Chat("c")
	err := fmt.Errorf("reading files: %w", &sources.GatewayError{Err: errors.New("it is away")})
	check.Equal(t, "retried, others", []bool{true, false}, []bool{sourcesError(chat, err).Retryable,
		sourcesError(chat, errors.New("no such key")).Retryable})
}

func TestRefusedReadOfInstructionsIsTriedAgain(t *testing.T) {
	rhymes := func(s *v1beta1.ChatSpec) {
		s.InstructionsFrom = []v1beta1.InstructionsSource{instructions("rules", "a")}
	}
	c := newTaught(t, rhymes)
	c.Refuse.Store(2)
	c.ask("hello")
	check.Contains(t, c.LastBody(), "Rhyme.")
	check.Equal(t, "reads", 3, int(c.Asked.Load()))
	c.Refuse.Store(1 << 20)
	c.say("again")
	m := c.interrupted(v1beta1.ActionGenerateAssistant, func() bool { return c.Asked.Load() > 3 })
	check.Equal(t, "interrupted while it is refused", "Interrupted: ", outline(m))
	check.Equal(t, "calls of the model", 1, len(c.Bodies("")))
}

// file is a part with a file.
func file(name, mediaType string, f v1beta1.MessageFile) v1beta1.MessagePart {
	f.Name, f.MediaType = name, mediaType
	return v1beta1.MessagePart{Type: v1beta1.PartFile, File: &f}
}

// show begins a turn with a text and files.
func (c *talk) show(files ...v1beta1.MessagePart) {
	c.put(chattest.User("c", "files", chattest.Content(""), chattest.Defaulted, func(m *v1beta1.ChatMessage) {
		m.Spec.Parts = append([]v1beta1.MessagePart{{Type: v1beta1.PartText, Text: new("what is this?")}}, files...)
	}))
}

func TestFilesReachTheModel(t *testing.T) {
	c := newTalk(t, replies(modelserver.Say("Nice.")))
	c.ConfigMaps = map[string]*apiclient.ConfigMap{"files": {Data: map[string]string{"note.txt": "from a ConfigMap"},
		BinaryData: map[string][]byte{"a.png": []byte("\x89PNG\r\n\x1a\nrest")}}}
	ref := func(key string) v1beta1.MessageFile {
		return v1beta1.MessageFile{ConfigMapKeyRef: &v1beta1.ConfigMapKeyReference{Name: "files", Key: key}}
	}
	c.show(file("in.txt", "text/plain", v1beta1.MessageFile{Data: "aW4gcGxhY2U="}),
		file("note.txt", "text/plain", ref("note.txt")), file("a.png", "image/png", ref("a.png")),
		file("b.png", "image/png", ref("b.png")),
		file("c.png", "image/png", v1beta1.MessageFile{URL: "https://files.example.com/c.png"}))
	c.reply()
	check.Contains(t, c.LastBody(), `in place`, `from a ConfigMap`, `data:image/png;base64,iVBORw0KGgpyZXN0`,
		`cannot be shown: ConfigMap files: it has no key \"b.png\".`,
		`host files.example.com is none that files may be fetched from, and the provider of the model fetches no files of this type itself.`)
	check.Equal(t, "reads of the ConfigMap", 1, int(c.Asked.Load()))
}

const (
	signedURL = "https://files.example.com/c.png?v=1&X-Amz-Signature=5f2a9c77e1"
	cleanURL  = "https://files.example.com/c.png?v=1&X-Amz-Signature=[redacted]"
)

// newFetched is a chat whose provider fetches files itself, and which is shown one.
func newFetched(t *testing.T, script modelserver.Script) *wired {
	t.Helper()
	form := wiredForm("anthropic")
	form.base = "-" // Only the provider's own host fetches files.
	w := newWired(t, form, script, debugged)
	w.show(file("c.png", "image/png", v1beta1.MessageFile{URL: signedURL}))
	return w
}

// plain is JSON whose URLs are written as they are.
func plain(body string) string { return strings.ReplaceAll(body, `\u0026`, "&") }

func TestURLReachesTheProviderWithoutBeingRecorded(t *testing.T) {
	c := newFetched(t, summarises(modelserver.Say("They looked at a cat.")))
	c.reply()
	sent := c.LastBody()
	check.Contains(t, plain(sent), `"source":{"url":"`+signedURL+`","type":"url"}`)
	step := c.recorded()["c-1-generateassistant"]
	check.Equal(t, "the recorded file", v1beta1.DebugPart{Type: v1beta1.DebugFile, Text: cleanURL, Name: "c.png",
		MediaType: "image/png"}, step.Request.Messages[0].Parts[1])
	// What is recorded is what was sent, but for the secret.
	check.Equal(t, "the recorded request", strings.ReplaceAll(plain(sent), signedURL, cleanURL),
		step.Attempts[0].Exchanges[0].RequestBody)
	c.say("Thanks.")
	check.Equal(t, "the summary", `Completed: Text "They looked at a cat."; Complete`,
		outline(c.compact(v1beta1.CompactionManual)))
	check.Contains(t, plain(c.LastBody()), signedURL, "Write a summary")
}

func TestURLThatCannotBeFetchedFailsNoTurn(t *testing.T) {
	script := replies(modelserver.Say("I cannot see it."))
	script.Rules = append([]modelserver.Rule{{Times: 1, Reply: modelserver.Reply{Fault: &modelserver.Fault{
		Kind: modelserver.FaultStatus, Status: http.StatusBadRequest, Message: "Unable to download the file " + signedURL +
			". Please verify the URL and try again.",
	}}}}, script.Rules...)
	c := newFetched(t, script)
	m := c.reply()
	check.Equal(t, "the reply", `Completed: Text "I cannot see it."; Complete`, outline(m))
	check.Contains(t, c.LastBody(), "could not fetch it from its URL")
	check.Lacks(t, plain(c.LastBody()), signedURL)
	check.Contains(t, strings.Join(m.Spec.Generation.Warnings, "\n"),
		"file was left out: c.png: the provider of the model could not fetch it")
	step := c.recorded()["c-1-generateassistant"]
	check.Equal(t, "exchanges", 2, len(step.Attempts[0].Exchanges))
	check.Lacks(t, jsonOf(t, step), "5f2a9c77e1")
}

func TestSettingsOfModelAndTurnReachTheProvider(t *testing.T) {
	for name, c := range map[string]struct{ chat, asked, want v1beta1.ReasoningEffort }{
		"plain":                 {"", "", "low"},
		"none":                  {"", v1beta1.EffortNone, "none"},
		"beyond the most":       {"", v1beta1.EffortMax, "high"},
		"of the chat":           {v1beta1.EffortMedium, "", "medium"},
		"of the message":        {v1beta1.EffortMedium, v1beta1.EffortMinimal, "minimal"},
		"of the chat, too high": {v1beta1.EffortMax, "", "high"},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newTalk(t, replies(modelserver.Say("Fine.")), func(s *v1beta1.ChatSpec) { s.ReasoningEffort = c.chat })
			talk.Add("default", func(s *v1beta1.ChatModelConfigSpec) {
				s.Provider, s.TopK, s.TopP = v1beta1.ProviderOpenAI, new(int64(5)), new(0.5)
				s.ReasoningEffort = &v1beta1.ReasoningEffortSettings{Default: v1beta1.EffortLow, Max: v1beta1.EffortHigh}
				s.ProviderOptions = &v1beta1.ProviderOptions{OpenAI: &v1beta1.OpenAIOptions{User: "u-1"}}
				s.Pricing = &v1beta1.Pricing{
					Currency: "USD", InputPerMillion: "2", OutputPerMillion: "3", CacheReadPerMillion: "0",
				}
			})
			talk.say("hello")
			talk.chat.Status.Turn.ReasoningEffort = c.asked
			g := talk.reply().Spec.Generation
			var sent map[string]any
			check.OK(t, json.Unmarshal([]byte(talk.LastBody()), &sent))
			check.Equal(t, "what is sent", []any{string(c.want), "u-1", 0.5},
				[]any{sent["reasoning_effort"], sent["user"], sent["top_p"]})
			check.Equal(t, "the warnings", []string{"topK was left out: the provider does not take it"}, g.Warnings)
			u := g.Usage
			check.Equal(t, "the cost", &v1beta1.Cost{Currency: "USD",
				MicroUnits: 2*(u.InputTokens+u.CacheWriteTokens) + 3*u.OutputTokens}, g.Cost)
		})
	}
	g := newTalk(t, modelserver.Script{}).ask("hello").Spec.Generation
	check.Equal(t, "the cost of a model without prices", nil, g.Cost)
}

func TestUncallableModelSaysWhatToDo(t *testing.T) {
	for want, change := range map[string]func(*v1beta1.ChatModelConfigSpec){
		`openai-compatible refused the API key of ChatModelConfig m (401). Put a valid key into key "wrong" of Secret keys`: func(
			s *v1beta1.ChatModelConfigSpec) {
			s.APIKey.SecretKeyRef.Key = "wrong"
		},
		`Secret keys does not exist in namespace ns, or has no key "absent", or that is empty`: func(
			s *v1beta1.ChatModelConfigSpec) {
			s.APIKey.SecretKeyRef.Key = "absent"
		},
		`Create Secret keys in namespace ns with the key "empty"`: func(s *v1beta1.ChatModelConfigSpec) {
			s.APIKey.SecretKeyRef.Key = "empty"
		},
		"baseURL of ChatModelConfig m":  func(s *v1beta1.ChatModelConfigSpec) { s.BaseURL = "http://127.0.0.1:1/v1" },
		"ChatModelConfig m is disabled": func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = true },
		"openai-compatible sent nothing for 1s": func(s *v1beta1.ChatModelConfigSpec) {
			s.IdleTimeoutSeconds = new(int32(1))
		},
		"ChatModelConfig m does not exist": nil,
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := newTalk(t, modelserver.Script{Rules: []modelserver.Rule{
				{Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}}}})
			if change != nil {
				c.Add("m", change)
			}
			c.say("hello")
			e := c.on("m").reply().Spec.Generation.Error
			check.Contains(t, e.Text(), want)
			check.Lacks(t, e.Text(), "sk-")
		})
	}
}

func TestOnlyLargePromptsWaitForMemory(t *testing.T) {
	hangs := modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "small"}, Reply: said(modelserver.Say("Fine."))},
		{Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}},
	}}
	pod := newTalk(t, hangs)
	pod.options.PromptMemory = 5 << 20
	pod.steps = New(pod.options)
	data := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 300<<10)...) // A pod reckons with 2400 KiB for it.
	picture := file("a.png", "image/png", v1beta1.MessageFile{Data: base64.StdEncoding.EncodeToString(data)})
	beside := func() *talk {
		c := newTalk(t, hangs)
		c.steps = pod.steps
		return c
	}
	ctx, cancel := context.WithCancel(t.Context())
	large := func() {
		c := beside()
		c.show(picture)
		go c.perform(ctx, v1beta1.ActionGenerateAssistant)
	}
	for range 4 {
		large()
	}
	inFlight := func(n int) func() bool { return func() bool { return pod.Server.InFlight() == n } }
	pod.eventually("two calls are under way", inFlight(2))
	check.Equal(t, "a small prompt", "Fine.", beside().ask("small").Spec.Text())
	check.Equal(t, "calls with large prompts", 2, pod.Server.InFlight())
	cancel() // Also those that wait.
	pod.eventually("no call is under way", inFlight(0))
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	large()
	pod.eventually("there is room again", inFlight(1))
}

func TestProviderIsNotCalledBeforeRetryAfter(t *testing.T) {
	c := newTalk(t, modelserver.Script{Rules: []modelserver.Rule{{Times: 1, Reply: modelserver.Reply{
		Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429,
			RetryAfter: &modelserver.RetryAfter{Seconds: new(600)}}}}}})
	told := c.Add("told")
	told.Status.RetryAfter = new(metav1.NewTime(time.Now().Add(10 * time.Minute)))
	told.Status.RetryAfterGeneration = told.Generation
	c.say("hello")
	// The pod knows it from its own call, and from the status.
	for _, config := range []string{"default", "default", "told"} {
		e := c.on(config).reply().Spec.Generation.Error
		check.Equal(t, config, []any{v1beta1.ErrorRateLimited, true, true},
			[]any{e.Reason, e.Retryable, e.RetryAfter() >= 500*time.Second})
	}
	check.Equal(t, "calls", 1, len(c.Bodies("")))
}

// living is a tool that works in a workspace.
func living(name string) *counting {
	return &counting{name: name, Traits: tools.Traits{NeedsWorkspace: true}}
}

// of is a chat with a workspace of that source.
func of(source v1beta1.WorkspaceSource) func(*v1beta1.Chat) {
	return func(c *v1beta1.Chat) {
		c.Spec.Workspace, c.Status.Internal.Attempt.HasWorkspace = &source, true
	}
}

func TestModelIsToldOfItsToolsWorkspace(t *testing.T) {
	execute, create := living("execute"), &counting{name: "create_workspace"}
	for name, c := range map[string]struct {
		tools  []tools.Tool
		change func(*v1beta1.Chat)
		want   []string
	}{
		"its own": {[]tools.Tool{execute, create}, func(c *v1beta1.Chat) { c.Status.Internal.Attempt.HasWorkspace = true },
			[]string{ownWorkspace + keepsStorage + inWorkspace}},
		"its own, with storage": {[]tools.Tool{execute}, of(v1beta1.WorkspaceSource{
			PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Storage: &v1beta1.WorkspaceStorage{}}}),
			[]string{ownWorkspace + keepsStorage + inWorkspace}},
		"its own, without storage": {[]tools.Tool{execute}, of(v1beta1.WorkspaceSource{
			PodTemplateRef: &v1beta1.WorkspaceTemplateReference{}}), []string{ownWorkspace + keepsNothing + inWorkspace}},
		"one that it has chosen, without storage": {[]tools.Tool{execute}, of(v1beta1.WorkspaceSource{
			PodTemplateSelector: &v1beta1.WorkspaceTemplateSelector{}}), []string{ownWorkspace + keepsNothing + inWorkspace}},
		"a pod that somebody else runs": {[]tools.Tool{execute}, of(v1beta1.WorkspaceSource{
			PodRef: &v1beta1.WorkspacePodReference{}}), []string{ownWorkspace + inWorkspace}},
		"that of its parent": {[]tools.Tool{execute}, func(c *v1beta1.Chat) {
			c.Status.Internal.Attempt.HasWorkspace, c.Spec.ParentRef = true, &v1beta1.ChatReference{Name: "p"}
		}, []string{sharedWorkspace}},
		"one whose tools it may not call": {[]tools.Tool{execute}, func(c *v1beta1.Chat) {
			c.Status.Internal.Attempt.HasWorkspace = true
			c.Spec.Tools = &v1beta1.ChatTools{Deny: []v1beta1.ToolPattern{"execute"}}
		}, nil},
		"one that it may create": {[]tools.Tool{execute, create}, func(*v1beta1.Chat) {}, []string{noWorkspace}},
		"none":                   {[]tools.Tool{execute}, func(*v1beta1.Chat) {}, nil},
		"one, as the advisor": {[]tools.Tool{execute}, func(c *v1beta1.Chat) {
			c.Status.Internal.Attempt.HasWorkspace = true
			c.Status.Generation.Action = v1beta1.ActionExecuteTools
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := performer(c.tools...)
			p.chat.Status.Generation.Action = v1beta1.ActionGenerateAssistant
			c.change(p.chat)
			check.Equal(t, "it is told", c.want, toolGuidance(p.chat, p.steps.options.Tools))
		})
	}
}

func TestOutputHasRoomInTheContext(t *testing.T) {
	w := newWired(t, wiredForm("openai-compatible"), modelserver.Script{})
	config := w.config("small", w.URL)
	config.Spec.MaxOutputTokens, config.Spec.ContextLimit = nil, new(int64(4096))
	w.Put(config)
	w.on("small").ask("Hello?")
	var sent struct {
		MaxTokens int64 `json:"max_tokens"`
	}
	check.OK(t, json.Unmarshal(w.Server.Requests()[0].Body, &sent))
	if sent.MaxTokens < 1024 || sent.MaxTokens > 4096 {
		t.Errorf("%d tokens may be written", sent.MaxTokens)
	}
}
