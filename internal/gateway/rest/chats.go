// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
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

// ModelConfigs are the model configurations of a namespace.
type ModelConfigs struct {
	Body struct {
		ModelConfigs []ModelConfig `json:"modelConfigs" doc:"The ChatModelConfigs, by name."`
	}
}

// ModelConfig is what a list shows of a ChatModelConfig.
type ModelConfig struct {
	Name     string `json:"name" doc:"Its name."`
	Provider string `json:"provider" doc:"Who serves the model."`
	Model    string `json:"model" doc:"The model, as its provider calls it."`
	Default  bool   `json:"default,omitempty" doc:"Whether it answers chats that name none."`
	Disabled bool   `json:"disabled,omitempty" doc:"Whether it is disabled."`
	Ready    bool   `json:"ready" doc:"Whether it can answer."`
}

// ChatClasses are the classes of a namespace.
type ChatClasses struct {
	Body struct {
		ChatClasses []ChatClass `json:"chatClasses" doc:"The ChatClasses, by name."`
	}
}

// ChatClass is what a list shows of a ChatClass.
type ChatClass struct {
	Name         string   `json:"name" doc:"Its name."`
	Description  string   `json:"description,omitempty" doc:"What its chats are for."`
	FirstPrompts []string `json:"firstPrompts,omitempty" doc:"First messages to offer to people."`
	Default      bool     `json:"default,omitempty" doc:"Whether chats have it that name none."`
	Ready        bool     `json:"ready" doc:"Whether it is in force."`
}

// Templates are the templates of workspaces of a namespace.
type Templates struct {
	Body struct {
		Templates []apiclient.Template `json:"templates" doc:"The PodTemplates for workspaces, by name, at most 500."`
	}
}

const (
	// maxNamespaces bounds a list of namespaces.
	maxNamespaces = 2000
	// maxReviewed bounds the access reviews for one list of namespaces.
	maxReviewed = 50
)

// Namespaces are those of the cluster.
type Namespaces struct {
	Body struct {
		Namespaces []string `json:"namespaces" doc:"Their names, at most 2000."`
		More       bool     `json:"more,omitempty" doc:"Whether there may be others, which are not listed."`
	}
}

// listNamespaces is the operation that none of Parley's roles allows.
const listNamespaces = "listNamespaces"

func (a *api) chats() {
	const all, one = "/namespaces/{namespace}/chats", "/namespaces/{namespace}/chats/{chat}"
	register(a, operation("listChats", http.MethodGet, all, "List chats", "", http.StatusOK), a.listChats)
	register(a, operation("createChat", http.MethodPost, all, "Create a chat", "With spec.prompt it begins at once.",
		http.StatusCreated), a.createChat)
	register(a, operation("getChat", http.MethodGet, one, "Read a chat", "", http.StatusOK),
		func(ctx context.Context, in *OfChat) (*Answer[v1beta1.Chat], error) {
			return answerWith(a.client.Chats(in.Namespace).Get(ctx, in.Chat))
		})
	register(a, operation("changeChat", http.MethodPatch, one, "Change a chat", "Such as its title, suspend, or archived.",
		http.StatusOK), a.changeChat)
	register(a, operation("deleteChat", http.MethodDelete, one, "Delete a chat", "With its messages and sub-chats.",
		http.StatusNoContent), func(ctx context.Context, in *OfChat) (*struct{}, error) {
		return nil, a.client.Chats(in.Namespace).Delete(ctx, in.Chat, metav1.DeleteOptions{})
	})
	register(a, operation("listModelConfigs", http.MethodGet, "/namespaces/{namespace}/modelconfigs",
		"List what may answer chats", "", http.StatusOK), a.listModelConfigs)
	register(a, operation("listChatClasses", http.MethodGet, "/namespaces/{namespace}/chatclasses",
		"List the classes that chats may have", "", http.StatusOK), a.listChatClasses)
	register(a, operation("listTemplates", http.MethodGet, "/namespaces/{namespace}/templates",
		"List the templates of workspaces", "For those who may list PodTemplates.", http.StatusOK),
		func(ctx context.Context, in *InNamespace) (*Templates, error) {
			list, err := a.client.Templates(ctx, in.Namespace)
			out := &Templates{}
			out.Body.Templates = list
			return out, err
		})
	register(a, operation(listNamespaces, http.MethodGet, "/namespaces", "List the namespaces of the cluster",
		"Callers who may not get those of the first 50 of the gateway's --namespaces whose chats they may list.",
		http.StatusOK),
		a.listNamespaces)
}

func (a *api) listChats(ctx context.Context, in *ListChats) (*ChatList, error) {
	list, err := a.client.Chats(in.Namespace).List(ctx, metav1.ListOptions{Limit: in.Limit, Continue: in.Continue})
	if err != nil {
		return nil, err
	}
	out := &ChatList{}
	out.Body.Chats, out.Body.Continue = each(list.Items, chatlist.SummaryOf), list.Continue
	return out, nil
}

func (a *api) createChat(ctx context.Context, in *NewChat) (*Answer[v1beta1.Chat], error) {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Body.Name,
		Labels: in.Body.Labels}}
	if chat.Name == "" {
		chat.GenerateName = in.Body.Prefix
	}
	if err := into("spec", in.Body.Spec, &chat.Spec); err != nil {
		return nil, err
	}
	return answerWith(a.client.Chats(in.Namespace).Create(ctx, chat))
}

func (a *api) changeChat(ctx context.Context, in *ChangeChat) (*Answer[v1beta1.Chat], error) {
	if err := into("spec", in.Body.Spec, &v1beta1.ChatSpec{}); err != nil {
		return nil, err
	}
	patch := map[string]any{"spec": in.Body.Spec}
	if version := in.Body.ResourceVersion; version != "" {
		patch["metadata"] = map[string]any{"resourceVersion": version}
	}
	return answerWith(a.client.Chats(in.Namespace).MergePatch(ctx, in.Chat, patch))
}

func (a *api) listModelConfigs(ctx context.Context, in *InNamespace) (*ModelConfigs, error) {
	list, err := a.client.ModelConfigs(in.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := &ModelConfigs{}
	out.Body.ModelConfigs = each(list.Items, func(c *v1beta1.ChatModelConfig) ModelConfig {
		return ModelConfig{Name: c.Name, Provider: string(c.Spec.Provider), Model: c.Spec.Model, Default: c.Spec.Default,
			Disabled: c.Spec.Disabled, Ready: meta.IsStatusConditionTrue(c.Status.Conditions, v1beta1.ConditionReady)}
	})
	return out, nil
}

func (a *api) listChatClasses(ctx context.Context, in *InNamespace) (*ChatClasses, error) {
	list, err := a.client.Classes(in.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := &ChatClasses{}
	out.Body.ChatClasses = each(list.Items, func(c *v1beta1.ChatClass) ChatClass {
		return ChatClass{Name: c.Name, Description: c.Spec.Description, FirstPrompts: c.Spec.FirstPrompts,
			Default: c.Spec.Default, Ready: meta.IsStatusConditionTrue(c.Status.Conditions, v1beta1.ConditionReady)}
	})
	return out, nil
}

func (a *api) listNamespaces(ctx context.Context, _ *struct{}) (*Namespaces, error) {
	names, more, err := a.client.Namespaces(ctx, maxNamespaces)
	if apierrors.IsForbidden(err) && len(a.options.Namespaces) > 0 {
		names, more, err = allowedNamespaces(ctx, a.client, a.options.Namespaces)
	}
	if err != nil {
		return nil, err
	}
	out := &Namespaces{}
	out.Body.Namespaces, out.Body.More = append([]string{}, names...), more
	return out, nil
}

// allowedNamespaces are those of the gateway's own namespaces in which the caller may list chats.
func allowedNamespaces(ctx context.Context, client *apiclient.Client, served []string) (names []string, more bool,
	err error) {
	for _, namespace := range served[:min(len(served), maxReviewed)] {
		allowed, err := client.Allowed(ctx, apiclient.ResourceAttributes{Resource: "chats", Verb: "list",
			Namespace: namespace})
		if err != nil {
			return nil, false, err
		}
		if allowed {
			names = append(names, namespace)
		}
	}
	return names, len(served) > maxReviewed, nil
}
