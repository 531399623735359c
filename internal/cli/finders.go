// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// maxNamespaces is how many namespaces are named at most.
const maxNamespaces = 1000

var (
	allChats  = chatsThat(func(*v1alpha1.Chat) bool { return true })
	openChats = chatsThat(func(c *v1alpha1.Chat) bool { return !c.Status.Archived })
)

// chatsThat finds the chats of the namespace that are to be kept.
func chatsThat(keep func(*v1alpha1.Chat) bool) finder {
	return func(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
		return eachPage(ctx, metav1.ListOptions{Limit: listPage}, s.objects.chats().List, func(page *v1alpha1.ChatList) {
			for i := range page.Items {
				if c := &page.Items[i]; keep(c) {
					found(c.Name, fmt.Sprintf("%s %s", c.Status.Phase, c.Status.Title))
				}
			}
		})
	}
}

// messagesThat finds the messages of the chat that are to be kept.
func messagesThat(keep func(*v1alpha1.ChatMessage) bool) finder {
	return func(ctx context.Context, s *session, args []string, found func(name, description string)) error {
		return eachPage(ctx, ofChat(args[0]), s.objects.messages().List, func(page *v1alpha1.ChatMessageList) {
			for i := range page.Items {
				if m := &page.Items[i]; keep(m) {
					found(m.Name, string(m.Spec.Role)+": "+oneLine(m.Spec.Content))
				}
			}
		})
	}
}

// queued finds the messages of the chat that wait.
func queued(ctx context.Context, s *session, args []string, found func(name, description string)) error {
	chat, err := s.objects.chats().Get(ctx, args[0])
	if err != nil {
		return err
	}
	for _, m := range chat.Status.Queue {
		found(m.Name, "")
	}
	return nil
}

// callsThat finds the calls of the chat that are to be kept. They are typed with what ends them.
func callsThat(keep func(*v1alpha1.PendingToolCall) bool, end string) finder {
	return func(ctx context.Context, s *session, args []string, found func(name, description string)) error {
		chat, err := s.objects.chats().Get(ctx, args[0])
		if err != nil || chat.Status.RequiresAction == nil {
			return err
		}
		calls := chat.Status.RequiresAction.ToolCalls
		for i := range calls {
			if keep(&calls[i]) {
				found(calls[i].ID+end, calls[i].Name+" "+calls[i].Input)
			}
		}
		return nil
	}
}

func toDecide(c *v1alpha1.PendingToolCall) bool {
	return waitsFor(c) == forApproval || waitsFor(c) == forInput
}

func toAnswer(c *v1alpha1.PendingToolCall) bool {
	return waitsFor(c) == forClient || waitsFor(c) == forInput
}

func classes(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	return eachPage(ctx, metav1.ListOptions{Limit: listPage}, s.objects.client.Classes(s.objects.namespace).List,
		func(page *v1alpha1.ChatClassList) {
			for i := range page.Items {
				found(page.Items[i].Name, page.Items[i].Spec.Description)
			}
		})
}

func modelConfigs(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	return eachPage(ctx, metav1.ListOptions{Limit: listPage}, s.objects.client.ModelConfigs(s.objects.namespace).List,
		func(page *v1alpha1.ChatModelConfigList) {
			for i := range page.Items {
				found(page.Items[i].Name, page.Items[i].Spec.Model)
			}
		})
}

func namespaces(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	all, _, err := s.objects.client.Namespaces(ctx, maxNamespaces)
	for _, name := range all {
		found(name, "")
	}
	return err
}

// contexts finds those of the kubeconfig, without asking a cluster.
func contexts(_ context.Context, s *session, _ []string, found func(name, description string)) error {
	config, err := s.options.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		found(name, config.Contexts[name].Namespace)
	}
	return nil
}
