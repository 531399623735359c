// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
)

const (
	// logTransitions is the level of a line for each transition of the state machine,
	// logWrites that of one for each status write.
	logTransitions = 1
	logWrites      = 2
)

// logWrite logs what a write did that has just gone through, so that of two managers only the one says it that did it.
func logWrite(ctx context.Context, chat *v1beta1.Chat, todo *plan.Plan) {
	logger := log.FromContext(ctx).WithValues("chatUID", chat.UID)
	for _, t := range todo.Transitions {
		logger.V(logTransitions).Info("Chat transitioned", "event", t.Event, "from", t.From.Phase(), "to", t.To.Phase())
	}
	writes := logger.V(logWrites)
	if !writes.Enabled() {
		return
	}
	st := &chat.Status
	values := []any{"resourceVersion", chat.ResourceVersion, "phase", st.Phase, "historyVersion", st.History.Version,
		"queued", len(st.Queue)}
	if g := st.Generation; g != nil {
		values = append(values, "action", g.Action, "attempt", g.Attempt, "pod", g.Pod)
	}
	if e := st.LastError; e != nil {
		values = append(values, "error", e.Reason)
	}
	writes.Info("Wrote the status of a chat", values...)
}
