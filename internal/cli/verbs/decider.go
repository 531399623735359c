// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/converse"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/kube/apiclient"
)

// decider makes the decisions that a person types in lines. The person names a call by its number, which no other call
// has: a line that was typed for a call decides about no later one.
type decider struct {
	*conversation

	mu sync.Mutex
	// calls are those that were shown, in the order of their numbers.
	calls []shownCall
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

// moreCalls is no reason to deny a call: it has numbers of calls, perhaps with a decision.
var moreCalls = regexp.MustCompile(`^(?i:[yn]?\d+|and|,|\s)+$`)

// add returns the number of a call that is shown now.
func (d *decider) add(call *v1beta1.PendingToolCall) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, shownCall{*call, time.Now()})
	return len(d.calls)
}

// decide decides about the call with a number, and returns what to tell the person. A reason may follow the number of a
// call that is denied. Words behind that of one to approve may be a condition, so they make no number.
func (d *decider) decide(ctx context.Context, decision v1beta1.ApprovalDecision, number string) (string, error) {
	reason := ""
	if decision == v1beta1.DecisionDeny {
		if end := strings.IndexFunc(number, unicode.IsSpace); end >= 0 {
			number, reason = number[:end], strings.TrimSpace(number[end:])
		}
		if moreCalls.MatchString(reason) {
			return "", fmt.Errorf("nothing was decided, because %q may mean other calls: decide about each call in a line of "+
				"its own", reason)
		}
	}
	call, err := d.call(number)
	if err != nil {
		return "", err
	}
	if err := d.Decide(ctx, call.PendingToolCall, decision, reason); err != nil {
		return "", err
	}
	return fmt.Sprintf("call %s (%s) was %s", call.ID, call.Name, render.Decided[decision]), nil
}

func (d *decider) call(number string) (shownCall, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || at < 1 || at > len(d.calls) {
		return shownCall{}, fmt.Errorf("no call with the number %q was shown", number)
	}
	call := d.calls[at-1]
	if time.Since(call.since) < converse.ReadTime {
		return shownCall{}, fmt.Errorf("call %s was not decided, because it has only just been shown: read it, and "+
			"answer again", call.ID)
	}
	return call, nil
}
