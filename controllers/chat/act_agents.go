// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/agents"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/kube/denial"
)

// webhookRetries is how long after a message its decisions about sub-chats are retried while a webhook cannot be
// called: 2 min, by when the pod of a webhook that is upgraded or evicted should have been replaced. The chat waits
// meanwhile.
const webhookRetries = 2 * time.Minute

// changeAgents does what a committed message decides about sub-chats: it starts them, sends messages to them, or
// interrupts them. An Event says what the API server refuses for good, and the model finds out when it asks.
func (a *actuator) changeAgents(ctx context.Context, s *scope, of string) error {
	namespace := s.facts.Chat.Namespace
	s.facts.AgentsOf, s.facts.AgentsRejected = of, nil
	message, err := readMessage(ctx, a.live, namespace, of)
	if err != nil || message == nil || message.Spec.Generation == nil {
		return err // It has left the history.
	}
	// The cache leaves out what a sub-chat takes over.
	var parent v1beta1.Chat
	if err := a.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: s.facts.Chat.Name}, &parent); err != nil {
		return fmt.Errorf("reading chat %s: %w", s.facts.Chat.Name, err)
	}
	if parent.Status.Internal.AgentsOf != of {
		return nil // Another manager has done it. Since then somebody may have deleted what it made.
	}
	for i := range message.Spec.Generation.Agents {
		change := &message.Spec.Generation.Agents[i]
		err := a.changeAgent(ctx, &parent, change)
		if words := rejection(err, change, s.facts.Now.Sub(message.CreationTimestamp.Time)); words != "" {
			s.facts.AgentsRejected = append(s.facts.AgentsRejected,
				fmt.Sprintf("The API server refuses what the model wants of sub-chat %s: %s", change.Chat, words))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rejection is why the API server refuses a change for good, given the age of the model's decision; empty if it does
// not, or may not do so for long.
func rejection(err error, change *v1beta1.AgentChange, age time.Duration) string {
	if denial.IsWebhookFailure(err) && age < webhookRetries {
		return ""
	}
	return denial.Of(err, change.Chat)
}

func (a *actuator) changeAgent(ctx context.Context, parent *v1beta1.Chat, change *v1beta1.AgentChange) error {
	if change.Spawn != nil {
		return a.create(ctx, "starting", change, agents.Spawned(parent, change))
	}
	sub, err := below(ctx, a.live, parent, change.Chat)
	if err != nil || sub == nil {
		return err // It has been deleted.
	}
	if change.Message != nil {
		return a.create(ctx, "sending a message to", change, agents.Said(parent, change))
	}
	token := agents.Token(change.Key)
	if sub.Annotations[v1beta1.RequestInterrupt.Annotation()] == token {
		return nil
	}
	before := sub.DeepCopy()
	if sub.Annotations == nil {
		sub.Annotations = map[string]string{}
	}
	sub.Annotations[v1beta1.RequestInterrupt.Annotation()] = token
	if err := a.client.Patch(ctx, sub, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("interrupting sub-chat %s: %w", change.Chat, err)
	}
	return nil
}

// create creates what a call asks for. One of its name that this call has not created is another's, and stays as it is.
func (a *actuator) create(ctx context.Context, doing string, change *v1beta1.AgentChange, o client.Object) error {
	err := a.client.Create(ctx, o)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s sub-chat %s: %w", doing, change.Chat, err)
	}
	return nil
}

// below reads a chat below another one; nil if there is none.
func below(ctx context.Context, live client.Reader, parent *v1beta1.Chat, name string) (*v1beta1.Chat, error) {
	sub, err := tree.Descendant(name, parent.Name, func(name string) (*v1beta1.Chat, error) {
		var chat v1beta1.Chat
		err := live.Get(ctx, types.NamespacedName{Namespace: parent.Namespace, Name: name}, &chat)
		return &chat, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chat %s below %s: %w", name, parent.Name, err)
	}
	return sub, nil
}
