// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

// lateApprovals is a cache that shows ToolApprovals as they were created.
type lateApprovals struct{ client.Reader }

func (l lateApprovals) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	late, ok := list.(*v1beta1.ToolApprovalList)
	if !ok {
		return l.Reader.List(ctx, list, opts...)
	}
	if err := l.Reader.List(ctx, list, client.InNamespace("ns")); err != nil {
		return err
	}
	for i := range late.Items {
		late.Items[i].Status = v1beta1.ToolApprovalStatus{}
	}
	return nil
}

// The chat has run the call and knows nothing of the decision any longer.
func TestLateCacheLeavesAppliedDecisionsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		says, want v1beta1.ConditionReason
	}{
		"an applied one": {v1beta1.ReasonApplied, v1beta1.ReasonApplied},
		"an open one":    {"", v1beta1.ReasonNotPending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.rec()
			given := chattest.In("ns", &v1beta1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1},
				Spec: v1beta1.ToolApprovalSpec{ChatRef: v1beta1.ChatReference{Name: "c"}, ToolCallID: "1",
					Decision: v1beta1.DecisionDeny}})
			check.OK(t, w.Direct.Create(t.Context(), given))
			if c.says != "" {
				conditions.Approval(given, c.says, now)
				check.OK(t, w.Direct.Status().Update(t.Context(), given))
			}
			w.gatherer.cache = lateApprovals{w.cache}
			w.rec()
			ready := meta.FindStatusCondition(fakeapi.Read(t, w.Server, given).Status.Conditions, v1beta1.ConditionReady)
			check.Equal(t, "the decision says", c.want, v1beta1.ReasonOf(ready))
		})
	}
}

// The manager that led before wrote that the call waits, and the cache of this one is late.
func TestDecisionIsNotRejectedFromStaleView(t *testing.T) {
	for _, todo := range []plan.Plan{{NotPending: []string{"a"}}, {Mismatched: []string{"a"}}} {
		w := newWorld(t)
		given := chattest.In("ns", &v1beta1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1}})
		check.OK(t, w.Direct.Create(t.Context(), given))
		s := &scope{facts: plan.Facts{Chat: w.chat(), Now: now}}
		w.rec()
		err := w.actuator.settleOpenApprovals(t.Context(), s, &todo)
		check.Equal(t, "conflict, conditions", []any{true, 0},
			[]any{apierrors.IsConflict(err), len(fakeapi.Read(t, w.Server, given).Status.Conditions)})
	}
}
