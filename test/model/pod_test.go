// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/testing/playedpod"
)

// labelKey carries the name that an operation gave a generated message: its own name follows from the fence.
const labelKey = "model"

// attempt waits for the attempt under way.
func (d *driver) attempt(ctx context.Context) (*v1alpha1.Chat, error) {
	for {
		o := watched.get(d.chat)
		if o.chat != nil && o.chat.Status.Generation != nil && fenceOf(o.chat) != d.answered {
			return o.chat, nil
		}
		select {
		case <-o.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for an attempt: %w", ctx.Err())
		}
	}
}

// look remembers the attempt under way: it may be given up.
func (d *driver) look() {
	chat := watched.get(d.chat).chat
	if chat == nil || chat.Status.Generation == nil || fenceOf(chat) == d.answered {
		return
	}
	if !slices.ContainsFunc(d.open, func(c v1alpha1.Chat) bool { return fenceOf(&c) == fenceOf(chat) }) {
		d.open = append(d.open, *chat)
	}
}

// settle remembers that the attempt has its answer.
func (d *driver) settle(chat *v1alpha1.Chat) {
	d.answered = fenceOf(chat)
	d.open = slices.DeleteFunc(d.open, func(c v1alpha1.Chat) bool { return fenceOf(&c) == d.answered })
}

// generated is what a generation pod would create for the chat's attempt.
func generated(chat *v1alpha1.Chat, key string, outcome v1alpha1.GenerationOutcome) *v1alpha1.ChatMessage {
	m := playedpod.Message(chat)
	m.Labels = map[string]string{labelKey: key}
	m.Spec.Generation.Outcome = outcome
	return m
}

// answer ends the attempt under way with content, and with what changes make of it.
func (d *driver) answer(
	ctx context.Context, key string, outcome v1alpha1.GenerationOutcome, kinds []string,
	changes ...func(*v1alpha1.ChatMessage),
) error {
	chat, err := d.attempt(ctx)
	if err != nil {
		return err
	}
	m := generated(chat, key, outcome)
	fill(m, key, kinds, d.unanswered())
	for _, change := range changes {
		change(m)
	}
	d.settle(chat)
	return d.create(ctx, m)
}

// fill writes what the model or the tools said.
func fill(m *v1alpha1.ChatMessage, key string, kinds []string, contextStart int64) {
	if m.Spec.Role == v1alpha1.RoleTool {
		m.Spec.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartToolResult,
			ToolResult: &v1alpha1.ToolResult{ID: key, Output: "done"}}}
		return
	}
	if m.Spec.Role == v1alpha1.RoleSystem {
		m.Spec.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: new("They spoke.")}}
		m.Spec.Generation.Compaction = &v1alpha1.CompactionAccount{Source: v1alpha1.CompactionManual,
			ContextStart: contextStart}
		return
	}
	m.Spec.Generation.Context = &v1alpha1.ContextStatus{Replies: 1}
	m.Spec.Parts = append([]v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: new("Fine.")}}, toolCalls(key, kinds)...)
	m.Spec.Generation.Preview = "Fine."
	m.Spec.Generation.PendingCalls, m.Spec.Generation.CallsRequiringAction = int32(len(kinds)), int32(requiring(kinds))
}

// unanswered is the index of the first message at the end of the history that nobody has answered,
// or the history's length.
func (d *driver) unanswered() int64 {
	o := watched.get(d.chat)
	history, _ := d.walk(o)
	n := len(history)
	for n > 0 && strings.HasPrefix(history[n-1], string(v1alpha1.RoleUser)) {
		n--
	}
	return int64(n)
}

// report ends the attempt under way without content.
func (d *driver) report(ctx context.Context, outcome v1alpha1.GenerationOutcome, reason v1alpha1.ErrorReason,
	retryable bool) error {
	chat, err := d.attempt(ctx)
	if err != nil {
		return err
	}
	m := generated(chat, "report", outcome)
	if reason != "" {
		m.Spec.Generation.Error = &v1alpha1.GenerationError{Reason: reason, Message: "what is wrong", Advice: "what to do",
			Retryable: retryable}
	}
	d.settle(chat)
	return d.create(ctx, m)
}

// late answers an attempt that was given up, if there is one.
func (d *driver) late(ctx context.Context, key string) error {
	now := watched.get(d.chat).chat
	for i, chat := range slices.Backward(d.open) {
		f := fenceOf(&chat)
		if now.Status.Generation != nil && f == fenceOf(now) || now.Status.History.Version < f.version {
			continue
		}
		d.open = slices.Delete(d.open, i, i+1)
		m := generated(&chat, key, v1alpha1.OutcomeCompleted)
		fill(m, key, nil, d.unanswered())
		if err := d.create(ctx, m); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}
	return nil
}
