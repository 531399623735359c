// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/denial"
)

// copiesAtOnce is how many messages of a fork are created at once: a few requests keep the API server busy.
const copiesAtOnce = 8

// copies are the messages of one attempt to create a fork.
type copies struct {
	*forker
	chat *v1beta1.Chat
	// existing are the messages that the chat has already, by name: of an earlier attempt, or of others.
	existing map[string]*v1beta1.ChatMessage
}

// createAll creates the messages of people and clients first: generated ones record their UIDs. The newest generated
// one comes last, when the others are settled: a cache that shows it shows them all.
func (c *copies) createAll(ctx context.Context, fork *plan.Fork) error {
	var people, generated []*v1beta1.ChatMessage
	for _, m := range fork.Messages {
		if m.Spec.Generation == nil {
			people = append(people, m)
		} else {
			generated = append(generated, m)
		}
	}
	created, err := c.create(ctx, people)
	if err != nil {
		return err
	}
	uids := map[string]types.UID{}
	for name, m := range created {
		uids[name] = m.UID
	}
	fork.Link(uids)
	newest := max(0, len(generated)-1)
	if _, err := c.create(ctx, generated[:newest]); err != nil {
		return err
	}
	if err := c.settle(ctx, fork.Settled(c.now()), created); err != nil {
		return err
	}
	_, err = c.create(ctx, generated[newest:])
	return err
}

// each does something with each of the messages, a few at once, and returns the first error.
func each(ctx context.Context, messages []*v1beta1.ChatMessage,
	do func(context.Context, *v1beta1.ChatMessage) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	for _, m := range messages {
		group.Go(func() error { return do(ctx, m) })
	}
	return group.Wait()
}

// create creates the messages that do not exist yet, and returns all of them by name.
func (c *copies) create(ctx context.Context, messages []*v1beta1.ChatMessage) (map[string]*v1beta1.ChatMessage, error) {
	var mu sync.Mutex
	all := map[string]*v1beta1.ChatMessage{}
	return all, each(ctx, messages, func(ctx context.Context, m *v1beta1.ChatMessage) error {
		created, err := c.createOne(ctx, m)
		mu.Lock()
		defer mu.Unlock()
		all[m.Name] = created
		return err
	})
}

// createOne creates a message, unless it exists. One that seems to be outdated, or no copy, is read again.
func (c *copies) createOne(ctx context.Context, m *v1beta1.ChatMessage) (*v1beta1.ChatMessage, error) {
	if existing := c.existing[m.Name]; existing != nil && isCopy(c.chat, existing, m) && isCurrent(existing, m) {
		return existing, nil
	}
	created, err := c.createNew(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		var existing v1beta1.ChatMessage
		switch err = c.live.Get(ctx, client.ObjectKeyFromObject(m), &existing); {
		case err != nil:
		case !isCopy(c.chat, &existing, m):
			return nil, problem(v1beta1.ReasonForkRejected, "Another message has the name %s, which the fork needs: delete it",
				m.Name)
		case isCurrent(&existing, m):
			return &existing, nil
		default:
			created, err = c.replace(ctx, &existing, m)
		}
	}
	if words := denial.Of(err, m.Name); words != "" {
		return nil, problem(v1beta1.ReasonForkRejected, "The API server refuses message %s of the fork: %s", m.Name, words)
	}
	if err != nil {
		return nil, fmt.Errorf("creating message %s: %w", m.Name, err)
	}
	return created, nil
}

func (c *copies) createNew(ctx context.Context, m *v1beta1.ChatMessage) (*v1beta1.ChatMessage, error) {
	created := m.DeepCopy() // The answer has no status.
	created.Generation, created.UID = 0, ""
	return created, c.client.Create(ctx, created)
}

// replace deletes an outdated copy and creates the current one: the original was edited or redacted since.
func (c *copies) replace(ctx context.Context, old, m *v1beta1.ChatMessage) (*v1beta1.ChatMessage, error) {
	is := client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion}
	if err := c.client.Delete(ctx, old, is); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return c.createNew(ctx, m)
}

// isCurrent reports whether a copy has what its original has by now.
func isCurrent(copied, wanted *v1beta1.ChatMessage) bool {
	redacted := v1beta1.AnnotationRedacted
	return equality.Semantic.DeepEqual(copied.Spec, wanted.Spec) &&
		copied.Annotations[redacted] == wanted.Annotations[redacted]
}

// isCopy reports whether the message was created for this chat, and not for an earlier one of its name.
func isCopy(chat *v1beta1.Chat, m, wanted *v1beta1.ChatMessage) bool {
	if !m.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(m, chat) {
		return false
	}
	if from := v1beta1.AnnotationRestoredFrom; wanted.Annotations[from] != "" {
		return m.Annotations[from] == wanted.Annotations[from]
	}
	return plan.IsPrompt(chat, m)
}

// settle writes the statuses of messages. Otherwise the chatmessage controller would read the history for each.
func (c *copies) settle(ctx context.Context, settled []*v1beta1.ChatMessage, created map[string]*v1beta1.ChatMessage,
) error {
	return each(ctx, settled, func(ctx context.Context, m *v1beta1.ChatMessage) error {
		now := created[m.Name]
		if now.Status.State == v1beta1.MessageCommitted { // It was written before a crash.
			return nil
		}
		now.Status = m.Status
		if err := c.client.Status().Update(ctx, now); err != nil {
			return fmt.Errorf("writing the status of message %s: %w", m.Name, err)
		}
		return nil
	})
}
