// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// housed is a chat whose reply makes a call that needs the workspace, which waits for that; empty: it is ready.
func housed(t *testing.T, waits string) *world {
	t.Helper()
	w := newWorld(t).say("a")
	return w.pass(func(f *Facts) {
		f.Result, f.Workspace = chattest.Answer(w.chat, chattest.Works("1")), &Workspace{Starting: waits}
	})
}

func TestCallNeedingWorkspaceRequestsWorkspaceState(t *testing.T) {
	for name, c := range map[string]struct {
		reply chattest.Reply
		asks  bool
	}{
		"a call that needs it":      {chattest.Works("1"), true},
		"a call that does not":      {chattest.Calls("1"), false},
		"a reply without any calls": {chattest.Says("Fine."), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a")
			got, err := Advance(Facts{Chat: w.chat, Model: w.f.Model, Result: chattest.Answer(w.chat, c.reply), Now: now})
			if err != nil || got.Asks.Workspace != c.asks {
				t.Errorf("it asks for %+v, %v", got.Asks, err)
			}
		})
	}
}

func TestNoAttemptStartsUntilWorkspaceIsReady(t *testing.T) {
	w := housed(t, "the image is pulled").want("Running v2 c-1-1/2 - []").
		wantReason(v1beta1.ReasonWaitingForWorkspace)
	ready := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady)
	if !strings.HasSuffix(ready.Message, ": the image is pulled") {
		t.Errorf("it says %q", ready.Message)
	}
	w.pass(func(f *Facts) { f.Workspace = &Workspace{Starting: "the image is pulled"}; f.NoCapacity = "full" }).
		wantReason(v1beta1.ReasonWaitingForWorkspace)
	w.pass(func(f *Facts) { f.Workspace = &Workspace{} }).want("Running v2 c-1-1/2 1:ExecuteTools []")
}

func TestTheStepAfterTheCallsNeedsNoWorkspace(t *testing.T) {
	w := housed(t, "").want("Running v2 c-1-1/2 1:ExecuteTools []")
	w.pass(func(f *Facts) { f.Result = chattest.Answer(w.chat, chattest.Results("1")) }).
		want("Running v3 c-2-1/3 1:GenerateAssistant []")
}

func TestChatWaitingForWorkspaceCanBeInterrupted(t *testing.T) {
	w := housed(t, "the node is full")
	w.pass(func(f *Facts) { f.Requests = []Request{{Kind: v1beta1.RequestInterrupt, Token: "now"}} })
	if got := w.chat.Status.Turn.CallsCanceledReason; w.chat.Status.Generation != nil || got == "" {
		t.Errorf("the attempt is %+v, its calls are given up because of %q", w.chat.Status.Generation, got)
	}
}

func TestModelWorkspaceChangeIsRecordedInStatus(t *testing.T) {
	selector := &v1beta1.WorkspaceSource{PodTemplateSelector: &v1beta1.WorkspaceTemplateSelector{
		Storage: &v1beta1.WorkspaceStorage{Size: "1Gi"}}}
	named := &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}
	rust := &v1beta1.WorkspaceChange{Create: &v1beta1.WorkspaceTemplateReference{Name: "rust"}}
	chose := &v1beta1.ChatWorkspaceStatus{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "c"}}
	for name, c := range map[string]struct {
		spec   *v1beta1.WorkspaceSource
		had    *v1beta1.ChatWorkspaceStatus
		change *v1beta1.WorkspaceChange
		want   string
		stops  bool
	}{
		"it chooses":                           {selector, nil, rust, "rust", false},
		"it has chosen":                        {selector, chose, rust, "c", false},
		"it is not to choose":                  {named, nil, rust, "", false},
		"there is none":                        {nil, nil, rust, "", false},
		"it stops the one that the spec names": {named, nil, &v1beta1.WorkspaceChange{Stop: true}, "", true},
		"it stops the one that it chose":       {selector, chose, &v1beta1.WorkspaceChange{Stop: true}, "c", true},
		"it decides nothing":                   {selector, chose, nil, "c", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a")
			w.pass(func(f *Facts) { f.Result = chattest.Answer(w.chat, chattest.Calls("1")) })
			w.chat.Spec.Workspace, w.chat.Status.Workspace = c.spec, c.had.DeepCopy()
			w.pass(func(f *Facts) { f.Result = chattest.Answer(w.chat, chattest.Results("1"), chattest.Chooses(c.change)) })
			got := w.chat.Status.Workspace
			if got == nil {
				got = &v1beta1.ChatWorkspaceStatus{}
			}
			chosen := ""
			if got.PodTemplateRef != nil {
				chosen = got.PodTemplateRef.Name
			}
			if chosen != c.want || (got.StoppedAt != nil) != c.stops || c.stops && !got.StoppedAt.Time.Equal(now) {
				t.Errorf("the status has %+v", got)
			}
		})
	}
}

func TestWorkspaceContextIsReloadedOnRequest(t *testing.T) {
	for name, c := range map[string]struct {
		w       func(*testing.T) *world
		version int64
	}{
		"before the start": {func(t *testing.T) *world { return newWorld(t).pass(nil) }, 0},
		"at rest":          {func(t *testing.T) *world { return newWorld(t).say("a").answer(chattest.Says("hi")) }, 2},
		"in a turn":        {func(t *testing.T) *world { return newWorld(t).say("a") }, 1},
		"in an error": {func(t *testing.T) *world {
			return newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed))
		}, 1},
		"while it is interrupted": {func(t *testing.T) *world {
			w := newWorld(t).say("a").ask(v1beta1.RequestInterrupt)
			w.chat.Status.Requests = nil
			return w
		}, 1},
		"while a client is waited for": {func(t *testing.T) *world {
			return newWorld(t).say("a").answer(chattest.CallsRequiring(v1beta1.RequiresClient, "1"))
		}, 2},
		"while it is archived": {func(t *testing.T) *world {
			return newWorld(t).say("a").answer(chattest.Says("hi")).pass(func(f *Facts) { f.Archive = true })
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.w(t)
			before := w.chat.Status.DeepCopy()
			archived := w.chat.Status.Archived
			w.facts = func(f *Facts) { f.HasWorkspace, f.Archive = true, archived }
			w.ask(v1beta1.RequestRefreshContext).requested(v1beta1.RequestDone)
			after := w.chat.Status
			if after.Internal.ContextRefreshedVersion != c.version || after.Phase != before.Phase ||
				!equality.Semantic.DeepEqual(after.Generation, before.Generation) ||
				after.History != before.History {
				t.Errorf("it is asked for at version %d of %+v", after.Internal.ContextRefreshedVersion, after)
			}
		})
	}
}

func TestWithoutAWorkspaceNoContextIsReadAgain(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi")).ask(v1beta1.RequestRefreshContext).
		requested(v1beta1.RequestRefused)
	if st := w.chat.Status; st.Internal.ContextRefreshedVersion != 0 ||
		!strings.HasPrefix(st.Requests[0].Message, "the chat has no workspace") {
		t.Errorf("the status has %+v", st)
	}
	if got := w.last.Notices; len(got) != 1 || got[0].Reason != v1beta1.EventContextNotRefreshed ||
		got[0].Action != v1beta1.EventActionRefreshContext {
		t.Errorf("noticed are %+v", got)
	}
}
