// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subagents has the tools with which a model starts chats of its own below its chat, and talks to them. They
// read, and decide: the operator creates the chats and messages, once, when it has committed the results. So a
// generation pod needs no right to, and a batch that is lost has started nothing.
package subagents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/tools"
)

// Options of the tools. All are required.
type Options struct {
	// Chat and Config read one of the namespace, Chats lists chats of it. Errors are the API server's own.
	Chat   func(ctx context.Context, name string) (*v1alpha1.Chat, error)
	Config func(ctx context.Context, name string) (*v1alpha1.ChatModelConfig, error)
	Chats  func(ctx context.Context, options metav1.ListOptions) (*v1alpha1.ChatList, error)
}

// Tools are all of them.
func Tools(o Options) []tools.Tool {
	c := &common{o}
	return []tools.Tool{spawn{c}, message{c}, interrupt{c}, list{c}, models{c}}
}

// offered says to which chats.
const offered = "chats without a parent whose `spec.subAgents` is enabled"

type common struct{ options Options }

// suits reports whether the chat is at the top of a family, and its model may start others.
func suits(chat *v1alpha1.Chat) bool {
	return chat.Spec.ParentRef == nil && chat.Spec.SubAgents.On()
}

// allowed is why the chat may do nothing about agents, although its model was told of the tools; nil if it may.
func allowed(chat *v1alpha1.Chat) error {
	if !suits(chat) {
		return errors.New("this chat starts no agents: spec.subAgents does not let it")
	}
	return nil
}

// below are the chats that have the chat as their parent and are not archived.
func (c *common) below(ctx context.Context, chat *v1alpha1.Chat) ([]v1alpha1.Chat, error) {
	all, err := c.options.Chats(ctx, metav1.ListOptions{FieldSelector: "spec.parentRef.name=" + chat.Name})
	if err != nil {
		return nil, tools.Unread(ctx, "your agents")
	}
	return slices.DeleteFunc(all.Items, func(c v1alpha1.Chat) bool { return c.Status.Archived }), nil
}

// agent reads a chat below the one that calls. Of others the model learns nothing, not even whether they exist.
func (c *common) agent(ctx context.Context, caller *v1alpha1.Chat, name string) (*v1alpha1.Chat, error) {
	if err := allowed(caller); err != nil {
		return nil, err
	}
	sub, err := tree.Descendant(name, caller.Name,
		func(name string) (*v1alpha1.Chat, error) { return c.options.Chat(ctx, name) })
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

// blank reports whether a text says nothing: the API server would refuse it.
func blank(text string) bool {
	says := func(r rune) bool { return !unicode.IsSpace(r) && !unicode.In(r, unicode.Z, unicode.C) }
	return !strings.ContainsFunc(text, says)
}
