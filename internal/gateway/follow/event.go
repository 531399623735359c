// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

func statusOf(chat *v1alpha1.Chat) stream.Status {
	s := stream.Status{
		Phase:          chat.Status.Phase,
		HistoryVersion: chat.Status.History.Version,
		Length:         chat.Status.History.Length,
		Model:          chat.Status.Model,
		ContextStart:   chat.Status.History.ContextStart,
		Wait:           chat.Status.Wait,
		Root:           chat.Status.Root,
	}
	if chat.Spec.ParentRef != nil {
		s.Parent = chat.Spec.ParentRef.Name
	}
	for _, c := range chat.Status.Conditions {
		switch {
		case c.Type == v1alpha1.ConditionReady:
			s.Ready, s.Reason, s.Message = c.Status, c.Reason, c.Message
		case c.Type != v1alpha1.ConditionReconciling && c.Type != v1alpha1.ConditionStalled &&
			c.Status == metav1.ConditionTrue:
			s.Warnings = append(s.Warnings, stream.Warning{Type: c.Type, Reason: c.Reason, Message: c.Message})
		}
	}
	if g := chat.Status.Generation; g != nil {
		s.Attempt, s.Action, s.Pod = g.Attempt, g.Action, g.Pod
	}
	if chat.Status.Turn != nil {
		s.Turn, s.Result, s.CallsGivenUp = chat.Status.Turn.Message, chat.Status.Turn.Result, chat.Status.Turn.CallsGivenUp
	}
	return s
}

func retryOf(chat *v1alpha1.Chat) stream.Retry {
	r := chat.Status.Retry
	retry := stream.Retry{
		HistoryVersion: chat.Status.History.Version, Attempt: r.Attempt, Action: r.Action, At: r.At,
		Reason: r.Reason, Message: r.Message,
		Provider: r.Provider, StatusCode: r.StatusCode, ModelConfig: r.ModelConfig,
	}
	if !r.FailedAt.IsZero() {
		retry.DelayMS = max(0, r.At.Sub(r.FailedAt.Time).Milliseconds())
	}
	return retry
}

func errorOf(chat *v1alpha1.Chat) stream.Error {
	e := chat.Status.LastError
	return stream.Error{
		HistoryVersion: chat.Status.History.Version,
		Reason:         e.Reason, Message: e.Message, Advice: e.Advice, Provider: e.Provider, StatusCode: e.StatusCode,
		Action: e.Action, Retryable: e.Retryable,
	}
}

func actionOf(chat *v1alpha1.Chat) stream.RequiresAction {
	required := chat.Status.RequiresAction
	return stream.RequiresAction{HistoryVersion: chat.Status.History.Version, Deadline: required.Deadline,
		Message: required.Message, ToolCalls: required.ToolCalls}
}
