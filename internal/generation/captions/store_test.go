// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
)

// answered is a title that is there at once.
func answered(context.Context) (string, *v1alpha1.CallAccount) {
	return "A title", &v1alpha1.CallAccount{}
}

func TestATitleIsAskedForOnceAndItsCallAccountedForOnce(t *testing.T) {
	var s store
	of := caption{action: v1alpha1.ActionWriteTitle, chat: "c", message: "m", edition: 1}
	s.begin(t.Context(), of, answered)
	s.begin(t.Context(), of, func(context.Context) (string, *v1alpha1.CallAccount) {
		t.Error("a title was asked for twice")
		return "", nil
	})
	s.stop()
	if got := s.text(of); got != "A title" {
		t.Errorf("the title is %q", got)
	}
	call := s.swapAccount(of, nil)
	if call == nil || s.swapAccount(of, nil) != nil {
		t.Error("a call is not accounted for once")
	}
	s.swapAccount(of, call)
	if s.swapAccount(of, nil) != call {
		t.Error("a call whose result did not come to be is not accounted for later")
	}
	if got := s.newestTitle("c"); got != of {
		t.Errorf("the newest title of the chat is of %+v", got)
	}
	if got := s.newestTitle("another"); got != (caption{}) {
		t.Errorf("the newest title of another chat is of %+v", got)
	}
}

func TestATitleThatNobodyWaitsForIsGivenUpAndMayBeAskedForAgain(t *testing.T) {
	var s store
	of, gaveUp := caption{action: v1alpha1.ActionWriteTitle, chat: "c"}, make(chan struct{})
	s.begin(t.Context(), of, func(ctx context.Context) (string, *v1alpha1.CallAccount) {
		<-ctx.Done()
		close(gaveUp)
		return "", nil
	})
	s.abandon(of)
	<-gaveUp
	s.begin(t.Context(), of, answered)
	s.stop()
	if got := s.text(of); got != "A title" {
		t.Errorf("the title is %q", got)
	}
}

func TestTitlesThatAreKeptAreBounded(t *testing.T) {
	var s store
	for n := range int64(maxKept + 1) {
		s.begin(t.Context(), caption{action: v1alpha1.ActionWriteTitle, chat: "c", edition: n}, answered)
	}
	s.stop()
	first := caption{action: v1alpha1.ActionWriteTitle, chat: "c"}
	if len(s.kept) != maxKept || len(s.order) != maxKept || s.text(first) != "" {
		t.Errorf("%d titles are kept", len(s.kept))
	}
}

func TestNothingIsAskedOnceTheProcessEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	var s store
	s.begin(ended, summaryOf("c"), func(context.Context) (string, *v1alpha1.CallAccount) {
		t.Error("a caption is asked for")
		return "", nil
	})
	s.stop()
}

func TestASummaryIsGivenUpWhenItsChatGoesOn(t *testing.T) {
	var s store
	waits := func(gaveUp chan types.UID, chat types.UID) func(context.Context) (string, *v1alpha1.CallAccount) {
		return func(ctx context.Context) (string, *v1alpha1.CallAccount) {
			<-ctx.Done()
			gaveUp <- chat
			return "", nil
		}
	}
	gaveUp := make(chan types.UID, 3)
	s.begin(t.Context(), summaryOf("one"), waits(gaveUp, "one"))
	s.begin(t.Context(), summaryOf("one"), func(context.Context) (string, *v1alpha1.CallAccount) {
		t.Error("two summaries of a chat are asked for at once")
		return "", nil
	})
	s.begin(t.Context(), summaryOf("two"), waits(gaveUp, "two"))
	s.abandon(summaryOf("one"))
	if got := <-gaveUp; got != "one" {
		t.Errorf("the summary of %s was given up", got)
	}
	s.begin(t.Context(), summaryOf("one"), waits(gaveUp, "one again"))
	s.stop()
	if len(gaveUp) != 2 {
		t.Errorf("%d were given up in the end", len(gaveUp))
	}
	if got := s.newestTitle("one"); got != (caption{}) {
		t.Errorf("the summary is a title: %+v", got)
	}
}
