// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
)

// ReadUsage are the parameters of a reading of usage.
type ReadUsage struct {
	InNamespace

	Continue string `query:"continue" maxLength:"8192" doc:"From the answer before, to read on."`
}

// Usage is a piece of what the replies of a namespace have used.
type Usage struct {
	Body struct {
		Rows     []UsageRow `json:"rows" doc:"What the replies of this piece have used, in no order. Rows of another piece add to them."`
		Messages int        `json:"messages" doc:"How many messages were read for this answer."`
		Continue string     `json:"continue,omitempty" doc:"To read on; absent if all messages were read."`
	}
}

// UsageKey is what a row is about.
type UsageKey struct {
	Day   string `json:"day" doc:"The day on which the replies ended, in UTC."`
	Chat  string `json:"chat" doc:"Their chat."`
	Model string `json:"model,omitempty" doc:"Their model, as its provider calls it."`
}

// UsageRow is what the calls of a day used, of a chat and a model.
type UsageRow struct {
	UsageKey

	Calls int                `json:"calls" doc:"How many calls of the model: for replies, advice and titles."`
	Usage v1beta1.TokenUsage `json:"usage" doc:"Their tokens."`
	Cost  []v1beta1.Cost     `json:"cost,omitempty" doc:"Their costs, one of each currency."`
}

func (s searches) usage(ctx context.Context, in *ReadUsage) (out *Usage, err error) {
	out, rows := &Usage{}, map[UsageKey]UsageRow{}
	isCopy := s.copies(ctx, in.Namespace)
	look := func(m *v1beta1.ChatMessage) {
		out.Body.Messages++
		if isCopy(m) {
			return
		}
		for _, call := range cost.Calls(m.Spec.Generation) {
			key := usageKeyOf(m, call.Model)
			rows[key] = rows[key].with(key, call)
		}
	}
	enough := func() bool { return false }
	if out.Body.Continue, err = s.read(ctx, in.Namespace, in.Continue, look, enough); err != nil {
		return nil, err
	}
	out.Body.Rows = make([]UsageRow, 0, len(rows))
	for _, row := range rows {
		out.Body.Rows = append(out.Body.Rows, row)
	}
	return out, nil
}

// copies returns a function that reports whether a message is a copy that a fork began with. It reads each chat once.
func (s searches) copies(ctx context.Context, namespace string) func(*v1beta1.ChatMessage) bool {
	chats := map[string]*v1beta1.Chat{}
	return func(m *v1beta1.ChatMessage) bool {
		if m.Annotations[v1beta1.AnnotationRestoredFrom] == "" {
			return false
		}
		name := m.Spec.ChatRef.Name
		if _, read := chats[name]; !read {
			chats[name], _ = s.api.client.Chats(namespace).Get(ctx, name) // If it cannot be read, its messages count.
		}
		return chats[name] != nil && cost.IsCopy(chats[name], m)
	}
}

func usageKeyOf(m *v1beta1.ChatMessage, model *v1beta1.ModelIdentity) UsageKey {
	key := UsageKey{Day: m.Spec.Generation.FinishedAt.UTC().Format(time.DateOnly), Chat: m.Spec.ChatRef.Name}
	if model != nil {
		key.Model = model.Name
	}
	return key
}

// with is the row with one more call.
func (r UsageRow) with(key UsageKey, call cost.Call) UsageRow {
	r.UsageKey, r.Calls, r.Usage = key, r.Calls+1, r.Usage.Add(call.Usage)
	if call.Cost != nil {
		r.Cost = cost.Total(r.Cost, []v1beta1.Cost{*call.Cost})
	}
	return r
}

func (s searches) registerUsage() {
	register(s.api, operation(readUsage, http.MethodGet, "/namespaces/{namespace}/usage", "Read what replies have used",
		"Tokens and costs of calls by day, chat and model, of the messages that exist. Reads messages for about a second: "+
			"ask again with continue until it is absent. For those who may list ChatMessages.", http.StatusOK), s.usage)
}
