// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/converse"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/kube/apiclient"
)

// numbered holds the calls that were shown to a person who decides about them in lines. The person names a call by its
// number, which no other call has: a line that was typed for a call decides about no later one.
type numbered struct {
	*conversation

	mu    sync.Mutex
	shown []shownCall
}

type shownCall struct {
	v1beta1.PendingToolCall

	since time.Time
}

// mayDecide reports whether the caller may approve and deny calls.
func mayDecide(ctx context.Context, s *session) bool {
	allowed, err := s.Client.Allowed(ctx, apiclient.ResourceAttributes{Verb: "create", Resource: "toolapprovals",
		Namespace: s.Namespace})
	return allowed && err == nil
}

// add returns the number of a call that is shown now.
func (n *numbered) add(call *v1beta1.PendingToolCall) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shown = append(n.shown, shownCall{*call, time.Now()})
	return len(n.shown)
}

// decide decides about the call with a number, and returns what to tell the person.
func (n *numbered) decide(ctx context.Context, decision v1beta1.ApprovalDecision, number string) (string, error) {
	call, err := n.call(number)
	if err != nil {
		return "", err
	}
	if err := n.Decide(ctx, call.PendingToolCall, decision, ""); err != nil {
		return "", err
	}
	return fmt.Sprintf("call %s (%s) was %s", call.ID, call.Name, render.Decided[decision]), nil
}

func (n *numbered) call(number string) (*shownCall, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || at < 1 || at > len(n.shown) {
		return nil, fmt.Errorf("no call with the number %q was shown", number)
	}
	call := &n.shown[at-1]
	if time.Since(call.since) < converse.ReadTime {
		return nil, fmt.Errorf("call %s was not decided, because it has only just been shown: read it, and answer again",
			call.ID)
	}
	return call, nil
}
