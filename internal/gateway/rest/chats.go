// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/chatlist"
	"parley.dev/parley/internal/kube/apiclient"
)

// InNamespace is the namespace that a request is about.
type InNamespace struct {
	Namespace string `path:"namespace" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" maxLength:"63" doc:"The namespace."`
}

// OfChat is the chat that a request is about.
type OfChat struct {
	InNamespace

	Chat string `path:"chat" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" maxLength:"200" doc:"The name of the Chat."`
}

// ListChats are the parameters of a list of chats.
type ListChats struct {
	InNamespace

	Limit    int64  `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"How many to list at most."`
	Continue string `query:"continue" maxLength:"4096" doc:"From the list before, for the next ones."`
}

// ChatList is a list of chats.
type ChatList struct {
	Body struct {
		Chats    []stream.Summary `json:"chats" doc:"What the stream of a namespace reports of each chat."`
		Continue string           `json:"continue,omitempty" doc:"For the next ones; absent if there are none."`
	}
}

// NewChat creates a chat.
type NewChat struct {
	InNamespace

	Body struct {
		Name   string            `json:"name,omitempty" maxLength:"200" doc:"Its name. A second request with it creates nothing (409). Default: one that begins with prefix."`
		Prefix string            `json:"prefix,omitempty" maxLength:"63" default:"chat-" doc:"How a name that the API server makes up begins."`
		Labels map[string]string `json:"labels,omitempty" doc:"Its labels."`
		Spec   Fields            `json:"spec" doc:"Chat.spec."`
	}
}

// ChangeChat changes a chat.
type ChangeChat struct {
	OfChat

	Body struct {
		ResourceVersion string `json:"resourceVersion,omitempty" doc:"Of the Chat that the change is of: if it was changed since, nothing happens (409)."`
		Spec            Fields `json:"spec" doc:"The fields of Chat.spec to change; null takes one away (JSON merge patch)."`
	}
}

// OneChat is a chat.
type OneChat struct {
	Body *Chat
}

// chats are the operations on chats.
type chats struct{ client *apiclient.Client }

func (c chats) serve(a *api) {
	register(a, operation("listChats", http.MethodGet, "/namespaces/{namespace}/chats", "List chats", "", http.StatusOK),
		c.list)
	register(a, operation("createChat", http.MethodPost, "/namespaces/{namespace}/chats", "Create a chat",
		"With spec.prompt it begins at once.", http.StatusCreated), c.create)
	register(a, operation("getChat", http.MethodGet, "/namespaces/{namespace}/chats/{chat}", "Read a chat", "",
		http.StatusOK), c.get)
	register(a, operation("changeChat", http.MethodPatch, "/namespaces/{namespace}/chats/{chat}", "Change a chat",
		"Such as its title, suspend, or archived.", http.StatusOK), c.change)
	register(a, operation("deleteChat", http.MethodDelete, "/namespaces/{namespace}/chats/{chat}", "Delete a chat",
		"With its messages and sub-chats.", http.StatusNoContent), c.delete)
}

func (c chats) list(ctx context.Context, in *ListChats) (*ChatList, error) {
	list, err := c.client.Chats(in.Namespace).List(ctx,
		metav1.ListOptions{Limit: in.Limit, Continue: in.Continue})
	if err != nil {
		return nil, from(ctx, err)
	}
	out := &ChatList{}
	out.Body.Chats, out.Body.Continue = make([]stream.Summary, 0, len(list.Items)), list.Continue
	for i := range list.Items {
		out.Body.Chats = append(out.Body.Chats, chatlist.SummaryOf(&list.Items[i]))
	}
	return out, nil
}

func (c chats) create(ctx context.Context, in *NewChat) (*OneChat, error) {
	chat := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Body.Name,
		Labels: in.Body.Labels}}
	if chat.Name == "" {
		chat.GenerateName = in.Body.Prefix
	}
	if err := into("spec", in.Body.Spec, &chat.Spec); err != nil {
		return nil, err
	}
	created, err := c.client.Chats(in.Namespace).Create(ctx, chat)
	if err != nil {
		return nil, from(ctx, err)
	}
	return &OneChat{shownChat(created)}, nil
}

func (c chats) get(ctx context.Context, in *OfChat) (*OneChat, error) {
	chat, err := c.client.Chats(in.Namespace).Get(ctx, in.Chat)
	if err != nil {
		return nil, from(ctx, err)
	}
	return &OneChat{shownChat(chat)}, nil
}

func (c chats) change(ctx context.Context, in *ChangeChat) (*OneChat, error) {
	if err := into("spec", in.Body.Spec, &v1alpha1.ChatSpec{}); err != nil {
		return nil, err
	}
	patch := map[string]any{"spec": in.Body.Spec}
	if version := in.Body.ResourceVersion; version != "" {
		patch["metadata"] = map[string]any{"resourceVersion": version}
	}
	changed, err := c.client.Chats(in.Namespace).MergePatch(ctx, in.Chat, patch)
	if err != nil {
		return nil, from(ctx, err)
	}
	return &OneChat{shownChat(changed)}, nil
}

func (c chats) delete(ctx context.Context, in *OfChat) (*struct{}, error) {
	err := c.client.Chats(in.Namespace).Delete(ctx, in.Chat, metav1.DeleteOptions{})
	return nil, from(ctx, err)
}
