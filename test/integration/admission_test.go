// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

func TestBadInputIsRefusedWithTheFieldAndTheWayOut(t *testing.T) {
	ns := bareNamespace(t)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: ns} }
	message := func(change func(*v1alpha1.ChatMessageSpec)) client.Object {
		m := &v1alpha1.ChatMessage{ObjectMeta: meta("m"), Spec: v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: "c"}}}
		change(&m.Spec)
		return m
	}
	config := func(change func(*v1alpha1.ChatModelConfigSpec)) client.Object {
		c := &v1alpha1.ChatModelConfig{ObjectMeta: meta("m"), Spec: v1alpha1.ChatModelConfigSpec{
			Provider: v1alpha1.ProviderOpenAI, Model: "m",
			APIKey: &v1alpha1.APIKeySource{SecretKeyRef: v1alpha1.SecretKeyReference{Name: "s", Key: "k"}},
		}}
		change(&c.Spec)
		return c
	}
	for name, c := range map[string]struct {
		object client.Object
		want   string
	}{
		"a message without content": {message(func(*v1alpha1.ChatMessageSpec) {}), "exactly one of content and parts must be set"},
		"a message with both": {message(func(s *v1alpha1.ChatMessageSpec) {
			s.Content = "a"
			s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: new("a")}}
		}), "exactly one of content and parts must be set"},
		"a forged reply":            {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = "a"; s.Role = v1alpha1.RoleAssistant }), "role must be User"},
		"a forged place":            {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = "a"; s.Parent = "b" }), "parent and index are set by the operator"},
		"a part of the wrong shape": {message(func(s *v1alpha1.ChatMessageSpec) { s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartText}} }), "text must be set for the types Text and Reasoning"},
		"a part that users may not": {message(func(s *v1alpha1.ChatMessageSpec) {
			s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartReasoning, Text: new("a")}}
		}), "must be of type Text or File"},
		"an error that does not pass, with a wait": {message(func(s *v1alpha1.ChatMessageSpec) {
			s.Role, s.Generation = v1alpha1.RoleAssistant, &v1alpha1.MessageGeneration{
				ChatUID: "u", HistoryVersion: 1, Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: "p", Outcome: v1alpha1.OutcomeFailed,
				StartedAt: metav1.NowMicro(), FinishedAt: metav1.NowMicro(),
				Error: &v1alpha1.GenerationError{Reason: v1alpha1.ErrorRequestRejected, RetryAfterSeconds: new(int32(5))},
			}
		}), "retryAfterSeconds goes with retryable"},
		"content over 1 MiB":        {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = strings.Repeat("a", 1<<20+1) }), "1048576"},
		"content over 1 MiB, UTF-8": {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = strings.Repeat("é", 1<<19+1) }), "content may have at most 1048576 bytes (1 MiB)"},
		"parts over 1 MiB together": {message(func(s *v1alpha1.ChatMessageSpec) {
			p := v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: new(strings.Repeat("a", 1<<19+1))}
			s.Parts = []v1alpha1.MessagePart{p, p}
		}), "1048576 characters"},
		"a file without content":        {message(file(v1alpha1.MessageFile{})), "exactly one of data, configMapKeyRef and url must be set"},
		"a file with two contents":      {message(file(v1alpha1.MessageFile{Data: []byte("a"), URL: "https://a"})), "exactly one of data, configMapKeyRef and url must be set"},
		"a file of a strange type":      {message(file(v1alpha1.MessageFile{Data: []byte("a"), MediaType: "image"})), "mediaType"},
		"a file whose name is a path":   {message(file(v1alpha1.MessageFile{Data: []byte("a"), Name: "a/b"})), "name"},
		"a file whose URL has a key":    {message(file(v1alpha1.MessageFile{URL: "https://u:p@a/b"})), "url"},
		"a file over 700 KiB of base64": {message(file(v1alpha1.MessageFile{Data: make([]byte, 716800/4*3+1)})), "data"},
		"files over 1 MiB together": {message(func(s *v1alpha1.ChatMessageSpec) {
			file(v1alpha1.MessageFile{Data: make([]byte, 716800/4*3)})(s)
			s.Parts = append(s.Parts, v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: new(strings.Repeat("a", 400000))})
		}), "the files in base64, may have at most 1048576 characters"},
		"a part File without one": {message(func(s *v1alpha1.ChatMessageSpec) { s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartFile}} }), "file must be set for the type File"},
		"instructions without a key": {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{InstructionsFrom: []v1alpha1.InstructionsSource{
			{ConfigMapKeyRef: v1alpha1.ConfigMapKeyReference{Name: "a"}},
		}}}, "spec.instructionsFrom[0].configMapKeyRef.key"},
		"17 instructions": {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{InstructionsFrom: slices.Repeat([]v1alpha1.InstructionsSource{
			{ConfigMapKeyRef: v1alpha1.ConfigMapKeyReference{Name: "a", Key: "b"}},
		}, 17)}}, "must have at most 16 items"},
		"the name of a reply to come":   {say(ns, "c", "c-2-1"), "belong to the replies of the chat"},
		"a reply by hand with results":  {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = "a"; s.Role = v1alpha1.RoleTool }), "a Tool message has parts, all of type ToolResult"},
		"a tool of Parley's name":       {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{Tools: &v1alpha1.ChatTools{Client: []v1alpha1.ClientTool{{Name: "current_time"}}}}}, "this is the name of a built-in tool"},
		"a tool of the advisor's name":  {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{Tools: &v1alpha1.ChatTools{Client: []v1alpha1.ClientTool{{Name: "advisor"}}}}}, "this is the name of a built-in tool"},
		"an advisor without uses":       {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{Advisor: &v1alpha1.ChatAdvisor{Enabled: true, MaxUses: new(int32(0))}}}, "spec.advisor.maxUses"},
		"an advisor of few words":       {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{Advisor: &v1alpha1.ChatAdvisor{Enabled: true, MaxOutputTokens: new(int64(255))}}}, "spec.advisor.maxOutputTokens"},
		"an advisor of no known effort": {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{Advisor: &v1alpha1.ChatAdvisor{Enabled: true, ReasoningEffort: "Most"}}}, "spec.advisor.reasoningEffort"},
		"the advisor among the allowed": {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{Tools: &v1alpha1.ChatTools{
			BuiltIn: &v1alpha1.BuiltInTools{Allow: []v1alpha1.BuiltInTool{v1alpha1.ToolAdvisor}},
		}}}, "spec.tools.builtIn.allow"},
		"a client's tool that needs approval": {&v1alpha1.Chat{ObjectMeta: meta("t"), Spec: v1alpha1.ChatSpec{Tools: &v1alpha1.ChatTools{
			Client: []v1alpha1.ClientTool{{Name: "f"}}, Approval: []string{"f"},
		}}}, "leave them out of approval"},
		"a tool without a name that ends the turn": {stopAfter(meta("t"), ""), "spec.tools.stopAfter[0]"},
		"a long name of such a tool":               {stopAfter(meta("t"), strings.Repeat("a", 65)), "spec.tools.stopAfter[0]"},
		"such a tool twice":                        {stopAfter(meta("t"), "a", "a"), "Duplicate value"},
		"65 such tools":                            {stopAfter(meta("t"), slices.Repeat([]string{"a"}, 65)...), "must have at most 64 items"},
		"a reply that says that a tool ended the turn": {message(func(s *v1alpha1.ChatMessageSpec) {
			s.Role, s.Generation = v1alpha1.RoleAssistant, &v1alpha1.MessageGeneration{
				ChatUID: "u", HistoryVersion: 1, Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: "p", Outcome: v1alpha1.OutcomeCompleted,
				StartedAt: metav1.NowMicro(), FinishedAt: metav1.NowMicro(), StoppedBy: "current_time",
			}
		}), "stoppedBy belongs to the results of a completed ExecuteTools"},
		"a long name of a chat":     {&v1alpha1.Chat{ObjectMeta: meta(strings.Repeat("a", 201))}, "at most 200 characters"},
		"an unknown provider":       {config(func(s *v1alpha1.ChatModelConfigSpec) { s.Provider = "acme" }), `supported values: "openai", "anthropic"`},
		"no key":                    {config(func(s *v1alpha1.ChatModelConfigSpec) { s.APIKey = nil }), "apiKey must be set for this provider"},
		"a bad baseURL":             {config(func(s *v1alpha1.ChatModelConfigSpec) { s.BaseURL = "models.example.com" }), "baseURL must be a URL such as"},
		"a baseURL of another kind": {config(func(s *v1alpha1.ChatModelConfigSpec) { s.BaseURL = "ftp://models.example.com" }), "baseURL must be a URL such as"},
		"no baseURL where needed":   {config(func(s *v1alpha1.ChatModelConfigSpec) { s.Provider = v1alpha1.ProviderOpenAICompatible }), "baseURL must be set"},
		"a transport where none is": {config(func(s *v1alpha1.ChatModelConfigSpec) {
			s.Provider = v1alpha1.ProviderAnthropic
			s.Transport = v1alpha1.TransportResponses
		}), "transport can only be set"},
		"a quota that says nothing": {chatQuota(ns, "q", nil, nil), "set chats, subChats or both; 0 lets none generate"},
		"a quota below zero":        {chatQuota(ns, "q", new(int32(-1)), nil), "spec.generating.chats"},
		"a quota of another cluster": {&v1alpha1.ClusterChatQuota{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
			"a ClusterChatQuota must be named default: there is one for the whole cluster"},
		"a cluster quota with an empty limit": {&v1alpha1.ClusterChatQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ClusterChatQuotaSpec{Generating: &v1alpha1.GeneratingLimits{}},
		}, "set chats, subChats or both"},
		"a temperature out of range": {config(func(s *v1alpha1.ChatModelConfigSpec) { s.Temperature = new(3.0) }), "spec.temperature"},
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
func stopAfter(meta metav1.ObjectMeta, tools ...string) *v1alpha1.Chat {
	return &v1alpha1.Chat{ObjectMeta: meta, Spec: v1alpha1.ChatSpec{Tools: &v1alpha1.ChatTools{StopAfter: tools}}}
}

// file makes a message's content one file; what is left out is right.
func file(f v1alpha1.MessageFile) func(*v1alpha1.ChatMessageSpec) {
	if f.Name == "" {
		f.Name = "a.png"
	}
	if f.MediaType == "" {
		f.MediaType = "image/png"
	}
	return func(s *v1alpha1.ChatMessageSpec) {
		s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartFile, File: &f}}
	}
}

func TestAMessageWithFilesIsTaken(t *testing.T) {
	ns := bareNamespace(t)
	for name, f := range map[string]v1alpha1.MessageFile{
		"in-place":  {Data: make([]byte, 716800/4*3)},
		"configmap": {Name: "Übersicht 2.pdf", MediaType: "application/pdf", ConfigMapKeyRef: &v1alpha1.ConfigMapKeyReference{Name: "files", Key: "plan.pdf"}},
		"url":       {MediaType: "image/svg+xml", URL: "https://files.example.com/a.svg?x=1"},
	} {
		m := say(ns, "c", name)
		m.Spec.Content = ""
		file(f)(&m.Spec)
		create(t, m)
		if got := messageIn(t, ns, name).Spec.Parts; len(got) != 1 || len(got[0].File.Data) != len(f.Data) {
			t.Errorf("%s: the file did not come back", name)
		}
	}
}

func TestAMessageOfOneMebibyteWorks(t *testing.T) {
	ns := namespace(t)
	create(t, newChat(ns, "c", ""))
	m := say(ns, "c", "big")
	m.Spec.Content = strings.Repeat("a", 1<<20)
	create(t, m)
	create(t, answer(assigned(t, ns, "c", 1, 1), nil))
	waitForMessage(t, ns, "big", metav1.ConditionTrue, v1alpha1.ReasonAnswered)
	if got := len(messageIn(t, ns, "big").Spec.Content); got != 1<<20 {
		t.Errorf("the message now has %d bytes", got)
	}
}

func TestThePromptOfAChatCannotChange(t *testing.T) {
	ns := namespace(t)
	create(t, newChat(ns, "c", "first"))
	chat := newChat(ns, "c", "")
	body := []byte(`{"spec":{"prompt":"other"}}`)
	if err := cluster.Client.Patch(t.Context(), chat, client.RawPatch("application/merge-patch+json", body)); err == nil || !strings.Contains(err.Error(), "go on with a ChatMessage") {
		t.Errorf("editing the prompt: %v", err)
	}
}
