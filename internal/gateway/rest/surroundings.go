// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/apiclient"
)

// ModelConfigs are what may answer chats of a namespace.
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
	Name        string `json:"name" doc:"Its name."`
	Description string `json:"description,omitempty" doc:"What its chats are for."`
	Default     bool   `json:"default,omitempty" doc:"Whether chats have it that name none."`
	Ready       bool   `json:"ready" doc:"Whether it is in force."`
}

// maxNamespaces bounds a list of namespaces.
const maxNamespaces = 2000

// Namespaces are those of the cluster.
type Namespaces struct {
	Body struct {
		Namespaces []string `json:"namespaces" doc:"Their names, at most 2000."`
		More       bool     `json:"more,omitempty" doc:"Whether there are others, which are not listed."`
	}
}

// listNamespaces is the operation that none of Parley's roles grants.
const listNamespaces = "listNamespaces"

// surroundings are the operations on model configs, classes and namespaces.
type surroundings struct{ client *apiclient.Client }

func (s surroundings) serve(a *api) {
	register(a, operation("listModelConfigs", http.MethodGet, "/namespaces/{namespace}/modelconfigs",
		"List what may answer chats", "", http.StatusOK), s.listModelConfigs)
	register(a, operation("listChatClasses", http.MethodGet, "/namespaces/{namespace}/chatclasses",
		"List the classes that chats may have", "", http.StatusOK), s.listChatClasses)
	register(a, operation(listNamespaces, http.MethodGet, "/namespaces", "List the namespaces of the cluster",
		"For those who may list them. Which chats the caller may see in one, its list of chats says.", http.StatusOK),
		s.listNamespaces)
}

func (s surroundings) listModelConfigs(ctx context.Context, in *InNamespace) (*ModelConfigs, error) {
	list, err := s.client.ModelConfigs(in.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, from(ctx, err)
	}
	out := &ModelConfigs{}
	out.Body.ModelConfigs = make([]ModelConfig, 0, len(list.Items))
	for i := range list.Items {
		c := &list.Items[i]
		out.Body.ModelConfigs = append(out.Body.ModelConfigs, ModelConfig{
			Name: c.Name, Provider: string(c.Spec.Provider), Model: c.Spec.Model, Default: c.Spec.Default,
			Disabled: c.Spec.Disabled, Ready: meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady),
		})
	}
	return out, nil
}

func (s surroundings) listChatClasses(ctx context.Context, in *InNamespace) (*ChatClasses, error) {
	list, err := s.client.Classes(in.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, from(ctx, err)
	}
	out := &ChatClasses{}
	out.Body.ChatClasses = make([]ChatClass, 0, len(list.Items))
	for i := range list.Items {
		c := &list.Items[i]
		out.Body.ChatClasses = append(out.Body.ChatClasses, ChatClass{
			Name: c.Name, Description: c.Spec.Description, Default: c.Spec.Default,
			Ready: meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady),
		})
	}
	return out, nil
}

func (s surroundings) listNamespaces(ctx context.Context, _ *struct{}) (*Namespaces, error) {
	names, more, err := s.client.Namespaces(ctx, maxNamespaces)
	if err != nil {
		return nil, from(ctx, err)
	}
	out := &Namespaces{}
	out.Body.Namespaces, out.Body.More = append([]string{}, names...), more
	return out, nil
}
