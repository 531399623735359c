// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subagents has the tools with which a model starts sub-chats, and talks to them. The tools only read and
// validate. The operator creates the chats and messages, once, when it has committed the results. So a generation pod
// needs no right to create chats, and a lost batch has started nothing.
package subagents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/tools"
)

// Options of the tools. All are required.
type Options struct {
	// Chat and Config read one of the namespace, Chats lists chats of it. Errors are the API server's own.
	Chat   func(ctx context.Context, name string) (*v1beta1.Chat, error)
	Config func(ctx context.Context, name string) (*v1beta1.ChatModelConfig, error)
	Chats  func(ctx context.Context, options metav1.ListOptions) (*v1beta1.ChatList, error)
}

// Tools returns all tools of the package.
func Tools(o Options) []tools.Tool {
	return []tools.Tool{o.spawnAgent(), o.messageAgent(), o.interruptAgent(), o.listAgents(), o.listModels()}
}

const (
	offered = "chats without a parent whose `spec.subAgents` is enabled"
	// maxName is the maximum length of the name of a Kubernetes object.
	maxName = 253
)

// reading are the traits of the tools that list something.
var reading = tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: mayStart, Repeatable: true}

// mayStart reports whether the chat is a root, and its model may start sub-chats.
func mayStart(chat *v1beta1.Chat) bool {
	return chat.Spec.ParentRef == nil && chat.Spec.SubAgents.On()
}

// checkAllowed returns an error for a chat that may start no sub-chats, although its model called a tool.
func checkAllowed(chat *v1beta1.Chat) error {
	if !mayStart(chat) {
		return errors.New("this chat starts no agents: spec.subAgents does not let it")
	}
	return nil
}

// children are the chats below the chat that are not archived.
func (o Options) children(ctx context.Context, chat *v1beta1.Chat) ([]v1beta1.Chat, error) {
	all, err := o.Chats(ctx, metav1.ListOptions{FieldSelector: "spec.parentRef.name=" + chat.Name})
	if err != nil {
		return nil, tools.Unread(ctx, "your agents")
	}
	return slices.DeleteFunc(all.Items, func(c v1beta1.Chat) bool { return c.Status.Archived }), nil
}

// agent reads a chat below the caller. It does not reveal whether another chat exists.
func (o Options) agent(ctx context.Context, caller *v1beta1.Chat, name string) (*v1beta1.Chat, error) {
	if err := checkAllowed(caller); err != nil {
		return nil, err
	}
	sub, err := tree.Descendant(name, caller.Name,
		func(name string) (*v1beta1.Chat, error) { return o.Chat(ctx, name) })
	switch {
	case err != nil:
		return nil, tools.Unread(ctx, "agent "+name)
	case sub == nil:
		return nil, fmt.Errorf("there is no agent %q of yours: list_agents has them", name)
	case sub.Status.Archived || sub.Spec.Archived:
		return nil, fmt.Errorf("agent %q is archived: start another one", name)
	}
	return sub, nil
}

// modelConfigs are the names of the ChatModelConfigs for agents of the chat, its own first.
func modelConfigs(chat *v1beta1.Chat) []string {
	var names []string
	if g := chat.Status.Generation; g != nil && g.ModelConfig != "" {
		names = append(names, g.ModelConfig)
	}
	if chat.Spec.SubAgents != nil {
		for _, ref := range chat.Spec.SubAgents.ModelConfigs {
			if !slices.Contains(names, ref.Name) {
				names = append(names, ref.Name)
			}
		}
	}
	return names
}

// modelConfig reads a ChatModelConfig; nil if it does not exist or is disabled.
func (o Options) modelConfig(ctx context.Context, name string) (*v1beta1.ChatModelConfig, error) {
	config, err := o.Config(ctx, name)
	switch {
	case apierrors.IsNotFound(err) || err == nil && config.Spec.Disabled:
		return nil, nil
	case err != nil:
		return nil, tools.Unread(ctx, "model "+name)
	}
	return config, nil
}

// isBlank reports whether a text has no visible character. The API server would refuse it.
func isBlank(text string) bool {
	visible := func(r rune) bool { return !unicode.IsSpace(r) && !unicode.In(r, unicode.Z, unicode.C) }
	return !strings.ContainsFunc(text, visible)
}
