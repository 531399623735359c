// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/test/kit/chattest"
)

// yield is all that an attempt yields.
type yield []chattest.Reply

// generator plays the generation pods. It answers each attempt at most once, with the yields of the scenario in their
// order. An attempt that repeats one which had been answered in full is given the same answer again.
type generator struct {
	yields   []yield
	answered map[fence.Fence]bool
	full     map[fence.Fence]yield // by the fence without its attempt
}

func newGenerator() *generator {
	return &generator{answered: map[fence.Fence]bool{}, full: map[fence.Fence]yield{}}
}

// attempts is the number of attempts that were answered.
func (g *generator) attempts() int { return len(g.answered) }

// generate answers the chat's attempt under way, if it has one and the scenario has an answer.
func (g *generator) generate(ctx context.Context, chat *v1beta1.Chat) error {
	if chat == nil || chat.Status.Generation == nil {
		return nil
	}
	fence := fence.Fence{ChatUID: string(chat.UID), HistoryVersion: chat.Status.History.Version,
		Attempt: chat.Status.Generation.Attempt}
	if g.answered[fence] {
		return nil
	}
	step := fence
	step.Attempt = 0
	next, again := g.full[step]
	if !again {
		if len(g.yields) == 0 {
			return nil
		}
		next = g.yields[0]
	}
	message := chattest.Answer(chat, next...)
	if err := suits(message); err != nil {
		return err
	}
	err := cluster.Client.Create(ctx, message)
	if apierrors.IsAlreadyExists(err) {
		return nil // A chat of the same name left it behind. Its removal is a change that comes.
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", message.Name, err)
	}
	g.answered[fence] = true
	if message.Spec.Generation.Outcome == v1beta1.OutcomeCompleted {
		g.full[step] = next
	}
	if !again {
		g.yields = g.yields[1:]
	}
	return nil
}

// suits tells when the scenario answers with the model where tools are to run, or the other way round.
func suits(m *v1beta1.ChatMessage) error {
	for _, p := range m.Spec.Parts {
		if (p.Type == v1beta1.PartToolResult) != (m.Spec.Role == v1beta1.RoleTool) {
			return fmt.Errorf("the scenario answers the action %s with a part of type %s", m.Spec.Generation.Action, p.Type)
		}
	}
	return nil
}
