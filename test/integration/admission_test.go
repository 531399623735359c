// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestInvalidObjectIsRefusedWithFieldAndAdvice(t *testing.T) {
	ns := bareNamespace(t)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: ns} }
	message := func(change func(*v1beta1.ChatMessageSpec)) client.Object {
		m := &v1beta1.ChatMessage{ObjectMeta: meta("m"),
			Spec: v1beta1.ChatMessageSpec{ChatRef: v1beta1.ChatReference{Name: "c"}}}
		change(&m.Spec)
		return m
	}
	config := func(change func(*v1beta1.ChatModelConfigSpec)) client.Object {
		c := &v1beta1.ChatModelConfig{ObjectMeta: meta("m"), Spec: v1beta1.ChatModelConfigSpec{
			Provider: v1beta1.ProviderOpenAI, Model: "m",
			APIKey: &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "s", Key: "k"}},
		}}
		change(&c.Spec)
		return c
	}
	for name, c := range map[string]struct {
		object client.Object
		want   string
	}{
		"a message without content": {message(func(*v1beta1.ChatMessageSpec) {}),
			"exactly one of content, parts and history must be set"},
		"a message with both": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Content = "a"
			s.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: new("a")}}
		}), "exactly one of content, parts and history must be set"},
		"a message with a history, too": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Content, s.History = "a", []v1beta1.PriorMessage{{Role: v1beta1.RoleUser, Content: "b"}}
		}), "exactly one of content, parts and history must be set"},
		"a history for people alone": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Visibility, s.History = v1beta1.VisibleToUsers, []v1beta1.PriorMessage{{Role: v1beta1.RoleUser, Content: "b"}}
		}), "history belongs to User messages, and to no notes"},
		"results with a history": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Role, s.History = v1beta1.RoleTool, []v1beta1.PriorMessage{{Role: v1beta1.RoleUser, Content: "b"}}
		}), "history belongs to User messages, and to no notes"},
		"a history with words of a system": {message(func(s *v1beta1.ChatMessageSpec) {
			s.History = []v1beta1.PriorMessage{{Role: v1beta1.RoleSystem, Content: "b"}}
		}), "role in history must be User, Assistant or Tool"},
		"results for the model alone": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Role, s.Visibility = v1beta1.RoleTool, v1beta1.VisibleToModel
			s.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{ID: "a"}}}
		}), "visibility belongs to User messages"},
		"a note that cuts in": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Content, s.Visibility, s.WhenBusy = "a", v1beta1.VisibleToUsers, v1beta1.WhenBusyInterrupt
		}), "begins no turn and stops none"},
		"a note that chooses a model": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Content, s.Visibility = "a", v1beta1.VisibleToUsers
			s.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "m"}
		}), "leave whenBusy, modelConfigRef, reasoningEffort, output, toolChoice and stop out"},
		"results for people alone": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Role, s.Visibility = v1beta1.RoleTool, v1beta1.VisibleToUsers
			s.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{ID: "a"}}}
		}), "visibility belongs to User messages"},
		"a reply for people alone": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Role, s.Visibility = v1beta1.RoleAssistant, v1beta1.VisibleToUsers
			s.Generation = &v1beta1.MessageGeneration{
				ChatUID: "u", HistoryVersion: 1, Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: "p",
				Outcome: v1beta1.OutcomeCompleted, StartedAt: metav1.NowMicro(), FinishedAt: metav1.NowMicro(),
			}
		}), "of generated messages a summary alone has a visibility"},
		"a class that speaks for the namespace and is not its default": {chattest.In(ns, chattest.Class("m",
			func(s *v1beta1.ChatClassSpec) { s.NamespacePreamble = "Be lawful." })),
			"namespacePreamble counts in the default class of the namespace alone"},
		"spare pods of a class that is not the default": {chattest.In(ns, chattest.Class("m",
			func(s *v1beta1.ChatClassSpec) { s.SpareGenerationPods = 1 })),
			"spareGenerationPods counts in the default class of the namespace alone"},
		"a forged reply": {
			message(func(s *v1beta1.ChatMessageSpec) { s.Content = "a"; s.Role = v1beta1.RoleAssistant }),
			"role must be User"},
		"a forged place": {message(func(s *v1beta1.ChatMessageSpec) { s.Content = "a"; s.Parent = "b" }),
			"parent, index and follows are set by the operator"},
		"a part of the wrong shape": {
			message(func(s *v1beta1.ChatMessageSpec) { s.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartText}} }),
			"text must be set for the types Text and Reasoning"},
		"a part that users may not": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartReasoning, Text: new("a")}}
		}), "must be of type Text or File"},
		"an error that does not pass, with a wait": {message(func(s *v1beta1.ChatMessageSpec) {
			s.Role, s.Generation = v1beta1.RoleAssistant, &v1beta1.MessageGeneration{
				ChatUID: "u", HistoryVersion: 1, Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: "p",
				Outcome:   v1beta1.OutcomeFailed,
				StartedAt: metav1.NowMicro(), FinishedAt: metav1.NowMicro(),
				Error: &v1beta1.GenerationError{Reason: v1beta1.ErrorRequestRejected, RetryAfterSeconds: new(int32(5))},
			}
		}), "retryAfterSeconds goes with retryable"},
		"content over 1 MiB": {message(func(s *v1beta1.ChatMessageSpec) { s.Content = strings.Repeat("a", 1<<20+1) }),
			"1048576"},
		"content over 1 MiB, UTF-8": {message(func(s *v1beta1.ChatMessageSpec) { s.Content = strings.Repeat("é", 1<<19+1) }),
			"content may have at most 1048576 bytes (1 MiB)"},
		"parts over 1 MiB together": {message(func(s *v1beta1.ChatMessageSpec) {
			p := v1beta1.MessagePart{Type: v1beta1.PartText, Text: new(strings.Repeat("a", 1<<19+1))}
			s.Parts = []v1beta1.MessagePart{p, p}
		}), "1048576 characters"},
		"a file without content": {message(file(v1beta1.MessageFile{})),
			"exactly one of data, configMapKeyRef, url and stored must be set"},
		"a file with two contents": {message(file(v1beta1.MessageFile{Data: "YQ==", URL: "https://a"})),
			"exactly one of data, configMapKeyRef, url and stored must be set"},
		"a stored file that is too large": {message(file(v1beta1.MessageFile{Stored: &v1beta1.StoredFile{
			SHA256: strings.Repeat("a", 64), Size: v1beta1.MaxStoredFileBytes + 1}})), "3670016"},
		"a stored file without a digest": {message(file(v1beta1.MessageFile{Stored: &v1beta1.StoredFile{
			SHA256: strings.Repeat("A", 64), Size: 1}})), "sha256 is 64 hexadecimal digits in lower case"},
		"a file of a strange type":      {message(file(v1beta1.MessageFile{Data: "YQ==", MediaType: "image"})), "mediaType"},
		"a file whose name is a path":   {message(file(v1beta1.MessageFile{Data: "YQ==", Name: "a/b"})), "name"},
		"a file whose URL has a key":    {message(file(v1beta1.MessageFile{URL: "https://u:p@a/b"})), "url"},
		"a file over 700 KiB of base64": {message(file(v1beta1.MessageFile{Data: strings.Repeat("A", 716804)})), "data"},
		"a file in base64url":           {message(file(v1beta1.MessageFile{Data: "____"})), "data in body should match"},
		"a file that is no base64": {message(file(v1beta1.MessageFile{Data: "not base64"})),
			"data in body should match"},
		"a file without its padding": {message(file(v1beta1.MessageFile{Data: "YQ"})), "its length is no multiple of 4"},
		"files over 1 MiB together": {message(func(s *v1beta1.ChatMessageSpec) {
			file(v1beta1.MessageFile{Data: strings.Repeat("+", 716800)})(s)
			s.Parts = append(s.Parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: new(strings.Repeat("a", 400000))})
		}), "the files in base64, may have at most 1048576 characters"},
		"a part File without one": {
			message(func(s *v1beta1.ChatMessageSpec) { s.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartFile}} }),
			"file must be set for the type File"},
		"instructions without a key": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{InstructionsFrom: []v1beta1.InstructionsSource{
				{ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: "a"}},
			}}}, "spec.instructionsFrom[0].configMapKeyRef.key"},
		"17 instructions": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{InstructionsFrom: slices.Repeat([]v1beta1.InstructionsSource{
				{ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: "a", Key: "b"}},
			}, 17)}}, "must have at most 16 items"},
		"the name of a reply to come":      {say(ns, "c", "c-2-1"), "belong to generated messages"},
		"the name of another chat's reply": {say(ns, "no-such-chat", "squat-1-1"), "belong to generated messages"},
		"the name of a summary to come":    {say(ns, "c", "squat-7-summary"), "belong to generated messages"},
		"a title of 81 characters": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Title: strings.Repeat("ß", 81)}}, "title may have at most 80 characters"},
		"a title of two lines": {&v1beta1.Chat{ObjectMeta: meta("t"), Spec: v1beta1.ChatSpec{Title: "a\nb"}},
			"title must be one line"},
		"a blank message": {message(func(s *v1beta1.ChatMessageSpec) { s.Content = " \n\u00a0" }),
			"content is blank: say something"},
		"a blank prompt": {newChat(ns, "t", " \t"), "prompt is blank: say something"},
		"a Secret that is a path": {config(func(s *v1beta1.ChatModelConfigSpec) {
			s.APIKey.SecretKeyRef.Name = "../../secrets/kubernetes.io/serviceaccount"
		}), "spec.apiKey.secretKeyRef.name"},
		"a key that is a path": {config(func(s *v1beta1.ChatModelConfigSpec) { s.APIKey.SecretKeyRef.Key = ".." }),
			"a key is neither . nor begins with .."},
		"a fallback that is a path": {config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Fallbacks = []v1beta1.ModelConfigReference{{Name: "a/b"}}
		}), "spec.fallbacks[0].name"},
		"instructions whose key is a path": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{InstructionsFrom: []v1beta1.InstructionsSource{
				{ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: "a", Key: "."}},
			}}}, "a key is neither . nor begins with .."},
		"a skill without a ConfigMap": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{SkillsFrom: []v1beta1.SkillSource{{}}}}, "spec.skillsFrom[0].configMapRef.name"},
		"a tool of a name that skills have": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "read_skill"}}}}},
			"this is the name of a built-in tool"},
		"a parent that is no name": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{ParentRef: &v1beta1.ChatReference{Name: "A b"}}}, "spec.parentRef.name"},
		"a region that is a host": {config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider, s.Region = v1beta1.ProviderBedrock, "a@10.0.0.1:9090/x?"
		}), "spec.region"},
		"an apiVersion that is a query": {config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider, s.BaseURL, s.APIVersion = v1beta1.ProviderAzure, "https://a.example", "1&a=b"
		}), "spec.apiVersion"},
		"a model that is a path": {config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider,
				s.Model = v1beta1.ProviderGoogle, "../../v1/files"
		}), "model becomes part of a URL"},
		"a model that is a query": {config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider,
				s.Model = v1beta1.ProviderGoogle, "gemini?alt=x"
		}), "model becomes part of a URL"},
		"a model of two lines": {config(func(s *v1beta1.ChatModelConfigSpec) { s.Model = "a\nb" }), "spec.model"},
		"a header of two lines": {config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Headers = []v1beta1.Header{{Name: "X-A", Value: "a\r\nX-B: c"}}
		}), "spec.headers[0].value"},
		"a reply by hand with results": {
			message(func(s *v1beta1.ChatMessageSpec) { s.Content = "a"; s.Role = v1beta1.RoleTool }),
			"a Tool message has parts, all of type ToolResult"},
		"a tool of Parley's name": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "current_time"}}}}},
			"this is the name of a built-in tool"},
		"a tool of the advisor's name": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "advisor"}}}}},
			"this is the name of a built-in tool"},
		"an advisor without uses": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Advisor: &v1beta1.ChatAdvisor{Enabled: new(true), MaxUses: new(int32(0))}}},
			"spec.advisor.maxUses"},
		"an advisor of few words": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Advisor: &v1beta1.ChatAdvisor{Enabled: new(true), MaxOutputTokens: new(int64(255))}}},
			"spec.advisor.maxOutputTokens"},
		"an advisor of no known effort": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Advisor: &v1beta1.ChatAdvisor{Enabled: new(true), ReasoningEffort: "Most"}}},
			"spec.advisor.reasoningEffort"},
		"a tool among the allowed that nobody brings": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{
				Allow: []v1beta1.ToolPattern{"execute", "exceute"},
			}}}, "allow has a name that no tool has"},
		"a client's tool of a provider's name": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{
				Client:   []v1beta1.ClientTool{{Name: "code_execution"}},
				Provider: []v1beta1.ProviderTool{v1beta1.ProviderCodeExecution},
			}}}, "the names of the provider's own tools"},
		"a tool whose name ends in the middle": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{
				Deny: []v1beta1.ToolPattern{"*_file"},
			}}}, "spec.tools.deny[0]"},
		"an empty list of the allowed": {
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "parley.dev/v1beta1", "kind": "Chat", "metadata": map[string]any{"name": "t", "namespace": ns},
				"spec": map[string]any{"tools": map[string]any{"allow": []any{}}},
			}}, "spec.tools.allow"},
		"a client's tool that needs approval": {&v1beta1.Chat{ObjectMeta: meta("t"),
			Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{
				Client: []v1beta1.ClientTool{{Name: "f"}}, Approval: []v1beta1.ToolPattern{"f"},
			}}}, "leave them out of approval"},
		"a tool without a name that ends the turn": {stopAfter(meta("t"), ""), "spec.tools.stopAfter[0]"},
		"a long name of such a tool": {stopAfter(meta("t"), strings.Repeat("a", 65)),
			"spec.tools.stopAfter[0]"},
		"such a tool twice":     {stopAfter(meta("t"), "a", "a"), "Duplicate value"},
		"65 such tools":         {stopAfter(meta("t"), slices.Repeat([]string{"a"}, 65)...), "must have at most 64 items"},
		"a long name of a chat": {&v1beta1.Chat{ObjectMeta: meta(strings.Repeat("a", 201))}, "at most 200 characters"},
		"an unknown provider": {config(func(s *v1beta1.ChatModelConfigSpec) { s.Provider = "acme" }),
			`supported values: "openai", "anthropic"`},
		"no key": {config(func(s *v1beta1.ChatModelConfigSpec) { s.APIKey = nil }),
			"apiKey must be set for this provider"},
		"a bad baseURL": {config(func(s *v1beta1.ChatModelConfigSpec) { s.BaseURL = "models.example.com" }),
			"baseURL must be a URL such as"},
		"a baseURL of another kind": {
			config(func(s *v1beta1.ChatModelConfigSpec) { s.BaseURL = "ftp://models.example.com" }),
			"baseURL must be a URL such as"},
		"no baseURL where needed": {
			config(func(s *v1beta1.ChatModelConfigSpec) { s.Provider = v1beta1.ProviderOpenAICompatible }),
			"baseURL must be set"},
		"a transport where none is": {config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider = v1beta1.ProviderAnthropic
			s.Transport = v1beta1.TransportResponses
		}), "transport can only be set"},
		"a quota that says nothing":  {chatQuota(ns, "q", nil, nil), "set generating, storedFiles or both"},
		"a quota below zero":         {chatQuota(ns, "q", new(int32(-1)), nil), "spec.generating.chats"},
		"files of less than nothing": {filesQuota(ns, "-1"), "storedFiles is a quantity of bytes, 0 or more, such as 5Gi"},
		"files of no quantity":       {filesQuota(ns, "lots"), "storedFiles is a quantity of bytes, 0 or more, such as 5Gi"},
		"a quota of another cluster": {&v1beta1.ClusterChatQuota{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
			"a ClusterChatQuota must be named default: there is one for the whole cluster"},
		"a cluster quota with an empty limit": {&v1beta1.ClusterChatQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec:       v1beta1.ClusterChatQuotaSpec{Generating: &v1beta1.GeneratingLimits{}},
		}, "set chats, subChats or both"},
		"a temperature out of range": {config(func(s *v1beta1.ChatModelConfigSpec) { s.Temperature = new(3.0) }),
			"spec.temperature"},
	} {
		t.Run(name, func(t *testing.T) {
			err := cluster.Client.Create(t.Context(), c.object)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error does not say %q: %.600v", c.want, err)
			}
		})
	}
}

// stopAfter is a chat whose turns end after the tools.
func stopAfter(meta metav1.ObjectMeta, tools ...string) *v1beta1.Chat {
	return &v1beta1.Chat{ObjectMeta: meta, Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{StopAfter: tools}}}
}

// file makes a message's content one file; what is left out is right.
func file(f v1beta1.MessageFile) func(*v1beta1.ChatMessageSpec) {
	if f.Name == "" {
		f.Name = "a.png"
	}
	if f.MediaType == "" {
		f.MediaType = "image/png"
	}
	return func(s *v1beta1.ChatMessageSpec) {
		s.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartFile, File: &f}}
	}
}

// picture is a PNG in base64, in which every character of the alphabet occurs.
func picture(t *testing.T) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range img.Pix {
		img.Pix[i] = byte(i*i>>3 + i)
	}
	var out bytes.Buffer
	check.OK(t, png.Encode(&out, img))
	data := base64.StdEncoding.EncodeToString(out.Bytes())
	if !strings.Contains(data, "+") || !strings.Contains(data, "/") {
		t.Fatal("the picture has no unfriendly characters")
	}
	return data
}

func TestAMessageWithFilesIsTaken(t *testing.T) {
	ns := parallelBare(t)
	for name, f := range map[string]v1beta1.MessageFile{
		"in-place": {Data: strings.Repeat("/", 716800)},
		"plus":     {Data: "++++"},
		"slash":    {Data: "////"},
		"png":      {Data: picture(t)},
		"log":      {Name: "a.log", MediaType: "text/plain", Data: "++++////IGxpbmUgb2YgYSBsb2cgw7w="},
		"configmap": {Name: "Übersicht 2.pdf", MediaType: "application/pdf",
			ConfigMapKeyRef: &v1beta1.ConfigMapKeyReference{Name: "files", Key: "plan.pdf"}},
		"url":    {MediaType: "image/svg+xml", URL: "https://files.example.com/a.svg?x=1"},
		"stored": {Stored: &v1beta1.StoredFile{SHA256: strings.Repeat("0a", 32), Size: v1beta1.MaxStoredFileBytes}},
	} {
		m := say(ns, "c", name)
		m.Spec.Content = ""
		file(f)(&m.Spec)
		create(t, m)
		if got := messageIn(t, ns, name).Spec.Parts; len(got) != 1 || got[0].File.Data != f.Data {
			t.Errorf("%s: the file did not come back", name)
		}
	}
}

func TestNamesOfProvidersToolsAreTaken(t *testing.T) {
	ns := parallelBare(t)
	create(t, &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"},
		Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{
			Provider:   []v1beta1.ProviderTool{v1beta1.ProviderWebSearch, v1beta1.ProviderCodeExecution},
			ToolPolicy: v1beta1.ToolPolicy{Allow: []v1beta1.ToolPattern{"web_search", "code_execution"}},
			Client:     []v1beta1.ClientTool{{Name: "weather"}},
		}}})
}

func TestNamesOfRealModelsAndRegionsAreTaken(t *testing.T) {
	ns := parallelBare(t)
	for i, spec := range []v1beta1.ChatModelConfigSpec{
		{Provider: v1beta1.ProviderBedrock,
			Model:  "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0",
			Region: "us-gov-west-1"},
		{Provider: v1beta1.ProviderBedrock, Model: "anthropic.claude-3-5-sonnet-20241022-v2:0", Region: "ap-southeast-2"},
		{Provider: v1beta1.ProviderGoogle, Model: "gemini-2.5-flash-preview-05-20"},
		{Provider: v1beta1.ProviderGoogle, Model: "tunedModels/my-model-x1"},
		{Provider: v1beta1.ProviderAzure, Model: "gpt-4.1_prod", BaseURL: "https://a.openai.azure.com",
			APIVersion: "2025-01-01-preview"},
		{Provider: v1beta1.ProviderOpenRouter, Model: "deepseek/deepseek-r1:free"},
		{Provider: v1beta1.ProviderOpenAICompatible, Model: "/models/Qwen2.5-7B", BaseURL: "http://vllm.models:8000/v1"},
		{Provider: v1beta1.ProviderOpenAICompatible, Model: "accounts/fireworks/models/a#accounts/b/deployments/c",
			BaseURL: "https://api.fireworks.ai/inference/v1"},
		{Provider: v1beta1.ProviderOpenAICompatible, Model: "hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M",
			BaseURL: "http://ollama:11434/v1"},
	} {
		spec.APIKey = &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "keys.of-models",
			Key: ".data_1-a"}}
		create(t, &v1beta1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", i), Namespace: ns},
			Spec: spec})
	}
}

func TestAMessageOfOneMebibyteWorks(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	m := say(ns, "c", "big")
	m.Spec.Content = strings.Repeat("a", 1<<20)
	create(t, m)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "big", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	check.Equal(t, "the message now has bytes", 1<<20, len(messageIn(t, ns, "big").Spec.Content))
}
