// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package recordings_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/tools"
)

// conversation is a chat as a generation pod has it, whose messages are made of a recording.
type conversation struct {
	protocol string
	spec     v1beta1.ChatModelConfigSpec
	model    fantasy.LanguageModel
	in       prompt.Input
	tools    []v1beta1.ClientTool
	version  int64
}

var modelInPath = regexp.MustCompile(`/models?/([^/:]+)`)

// newConversation is that of a recording: its provider, model, system prompt and tools.
func newConversation(t *testing.T, first interaction, client *http.Client) *conversation {
	t.Helper()
	at, body := first.Request.URL, first.Request.Body
	c := &conversation{protocol: "chat"}
	for _, known := range []struct {
		in, protocol string
		provider     v1beta1.ModelProvider
	}{
		{"bedrock", "anthropic", v1beta1.ProviderBedrock}, {"anthropic", "anthropic", v1beta1.ProviderAnthropic},
		{"aiplatform.googleapis.com", "gemini", v1beta1.ProviderGoogle},
		{"generativelanguage", "gemini", v1beta1.ProviderGoogle},
		{"openrouter", "chat", v1beta1.ProviderOpenRouter}, {"vercel", "chat", v1beta1.ProviderVercel},
		{"azure.com", "chat", v1beta1.ProviderAzure},
		{"api.openai.com", "chat", v1beta1.ProviderOpenAI}, {"", "chat", v1beta1.ProviderOpenAICompatible},
	} {
		if strings.Contains(at, known.in) {
			c.protocol, c.spec.Provider = known.protocol, known.provider
			break
		}
	}
	root := decoded(body)
	c.spec.Model = text(root, "model")
	if m := modelInPath.FindStringSubmatch(at); m != nil {
		c.spec.Model = m[1]
	}
	switch c.spec.Provider {
	case v1beta1.ProviderBedrock:
		c.spec.Region = "us-east-1"
	case v1beta1.ProviderAzure, v1beta1.ProviderOpenAICompatible:
		c.spec.BaseURL = "http://models.example.com/v1"
	}
	if strings.HasSuffix(at, "/responses") {
		c.protocol, c.spec.Transport = "responses", v1beta1.TransportResponses
	}
	var err error
	if c.model, err = provider.New(&c.spec, "a-key", client); err != nil {
		t.Fatal(err)
	}
	c.in.Dialect = provider.DialectOf(&c.spec)
	recorded := parse(c.protocol, body)
	c.tools = recorded.Tools
	for _, s := range recorded.Said {
		if s.Role == "system" {
			c.in.SystemPrompt += s.Body
		}
	}
	return c
}

// hear adds what a recorded request says behind the last reply.
func (c *conversation) hear(said []said) {
	last := 0
	for i := range said {
		if said[i].Role == "assistant" || said[i].Role == "system" {
			last = i + 1
		}
	}
	user, results := v1beta1.ChatMessage{}, v1beta1.ChatMessage{}
	user.Spec.Role, results.Spec.Role = v1beta1.RoleUser, v1beta1.RoleTool
	c.version++
	user.Name = fmt.Sprint("m", c.version)
	for _, s := range said[last:] {
		switch s.Kind {
		case "text":
			user.Spec.Parts = append(user.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: &s.Body})
		case "file":
			c.file(&user, s.Body)
		case "result":
			id := c.idOf(s.ID, len(results.Spec.Parts))
			results.Spec.Parts = append(results.Spec.Parts, v1beta1.MessagePart{
				Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{ID: id, Name: "f", Output: s.Body},
			})
		}
	}
	for _, m := range []v1beta1.ChatMessage{results, user} {
		if len(m.Spec.Parts) > 0 {
			c.in.History = append(c.in.History, m)
		}
	}
}

func (c *conversation) file(m *v1beta1.ChatMessage, encoded string) {
	data, _ := base64.StdEncoding.DecodeString(encoded)
	if c.in.Files == nil {
		c.in.Files = map[prompt.FileKey]prompt.File{}
	}
	c.in.Files[prompt.FileKey{Message: m.Name, Part: len(m.Spec.Parts)}] = prompt.File{Data: data}
	m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{File: &v1beta1.MessageFile{
		Name: "image", MediaType: "image/png", ConfigMapKeyRef: &v1beta1.ConfigMapKeyReference{},
	}})
}

// idOf is the chat's id of a call that the provider named so; of one that it did not name, the call at that place.
func (c *conversation) idOf(id string, place int) string {
	var calls []*v1beta1.ToolCall
	for _, part := range c.in.History[len(c.in.History)-1].Spec.Parts {
		if call := part.ToolCall; call != nil && !call.ProviderExecuted {
			calls = append(calls, call)
		}
	}
	for _, call := range calls {
		if id != "" && (call.ID == id || call.ProviderID == id) {
			return call.ID
		}
	}
	return calls[min(place, len(calls)-1)].ID
}

// ask calls the model as a generation pod does.
func (c *conversation) ask(ctx context.Context) (collect.Step, error) {
	call := provider.Call(&c.spec, "")
	call.Prompt = prompt.Build(c.in)
	for _, tool := range tools.OfClient(&v1beta1.ChatTools{Client: c.tools}) {
		call.Tools = append(call.Tools, fantasy.FunctionTool{Name: tool.Name, Description: tool.Description,
			InputSchema: tool.InputSchema})
	}
	var used []string
	for i := range c.in.History {
		for _, part := range c.in.History[i].Spec.Parts {
			if part.ToolCall != nil {
				used = append(used, part.ToolCall.ID)
			}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reply := collect.NewAccumulator(c.spec.Provider, c.version, used)
	stream, err := c.model.Stream(ctx, call)
	if err != nil {
		return collect.Step{}, err
	}
	finished := false
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			return collect.Step{}, part.Error
		}
		finished = finished || part.Type == fantasy.StreamPartTypeFinish
		reply.Add(&part)
	}
	if !finished {
		return collect.Step{}, fantasy.NewIncompleteStreamError()
	}
	return reply.Finish(), nil
}

// commit adds a reply to the history.
func (c *conversation) commit(s collect.Step) {
	m := v1beta1.ChatMessage{}
	c.version++
	m.Name, m.Spec.Role, m.Spec.Parts = fmt.Sprint("m", c.version), v1beta1.RoleAssistant, s.Parts
	m.Spec.Generation = &v1beta1.MessageGeneration{Model: &v1beta1.ModelIdentity{Provider: string(c.spec.Provider),
		Name: c.spec.Model}}
	c.in.History = append(c.in.History, m)
}

// ownTool reports whether a tool is the provider's own.
func (c *conversation) ownTool(name string) bool {
	return !slices.ContainsFunc(c.tools, func(tool v1beta1.ClientTool) bool { return tool.Name == name })
}

var sealedIn = regexp.MustCompile(`"(?:signature|encrypted_content|data)":"([^"]+)"`)

// replyOf is what would be committed, as a reply. Ids that the provider did not give are left out.
func replyOf(s collect.Step, body string) (r reply) {
	for i := range s.Parts {
		part := &s.Parts[i]
		for _, m := range sealedIn.FindAllStringSubmatch(part.ProviderMetadata, -1) {
			if part.Type != v1beta1.PartToolResult {
				r.Signatures = append(r.Signatures, m[1])
			}
		}
		switch part.Type {
		case v1beta1.PartText:
			r.Text += *part.Text
		case v1beta1.PartReasoning:
			r.Reasoning += *part.Text
		case v1beta1.PartSource:
			r.Sources = append(r.Sources, part.Source.URL)
		case v1beta1.PartToolCall:
			id := part.ToolCall.ID
			if part.ToolCall.ProviderID != "" {
				id = part.ToolCall.ProviderID
			}
			if !strings.Contains(body, id) {
				id = ""
			}
			r.Calls = append(r.Calls, callSaid{id, part.ToolCall.Name, part.ToolCall.Input})
		}
	}
	r.Input, r.Output, r.Finish = s.Usage.InputTokens+s.Usage.CacheReadTokens+s.Usage.CacheWriteTokens,
		s.Usage.OutputTokens, s.FinishReason
	return r
}
