// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// sameCaption compares captions as they are.
var sameCaption = cmpopts.EquateComparable(caption{})

// answered is a title that is there at once.
func answered(context.Context) (string, *v1beta1.CallAccount) {
	return "A title", &v1beta1.CallAccount{}
}

func TestTitleIsAskedForAndCountedOnce(t *testing.T) {
	var s store
	of := caption{action: v1beta1.ActionWriteTitle, chat: "c", message: "m", edition: 1}
	s.begin(t.Context(), of, answered)
	s.begin(t.Context(), of, func(context.Context) (string, *v1beta1.CallAccount) {
		t.Error("a title was asked for twice")
		return "", nil
	})
	s.stop()
	check.Equal(t, "the title", "A title", s.text(of))
	call := s.swapAccount(of, nil)
	if call == nil || s.swapAccount(of, nil) != nil {
		t.Error("a call is not accounted for once")
	}
	s.swapAccount(of, call)
	if s.swapAccount(of, nil) != call {
		t.Error("a call whose result did not come to be is not accounted for later")
	}
	check.Equal(t, "the newest title of the chat", of, s.newestTitle("c"), sameCaption)
	check.Equal(t, "the newest title of another chat", (caption{}), s.newestTitle("another"), sameCaption)
}

func TestAbandonedTitleMayBeAskedForAgain(t *testing.T) {
	var s store
	of, gaveUp := caption{action: v1beta1.ActionWriteTitle, chat: "c"}, make(chan struct{})
	s.begin(t.Context(), of, func(ctx context.Context) (string, *v1beta1.CallAccount) {
		<-ctx.Done()
		close(gaveUp)
		return "", nil
	})
	s.abandon(of)
	<-gaveUp
	s.begin(t.Context(), of, answered)
	s.stop()
	check.Equal(t, "the title", "A title", s.text(of))
}

func TestTitlesThatAreKeptAreBounded(t *testing.T) {
	var s store
	for n := range int64(maxKept + 1) {
		s.begin(t.Context(), caption{action: v1beta1.ActionWriteTitle, chat: "c", edition: n}, answered)
	}
	s.stop()
	first := caption{action: v1beta1.ActionWriteTitle, chat: "c"}
	check.Equal(t, "kept, order, text", []any{maxKept, maxKept, ""}, []any{len(s.kept), len(s.order), s.text(first)})
}

func TestNothingIsAskedOnceTheProcessEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	var s store
	s.begin(ended, summaryOf("c"), func(context.Context) (string, *v1beta1.CallAccount) {
		t.Error("a caption is asked for")
		return "", nil
	})
	s.stop()
}

func TestSummaryIsGivenUpWhenItsChatContinues(t *testing.T) {
	var s store
	waits := func(gaveUp chan types.UID, chat types.UID) func(context.Context) (string, *v1beta1.CallAccount) {
		return func(ctx context.Context) (string, *v1beta1.CallAccount) {
			<-ctx.Done()
			gaveUp <- chat
			return "", nil
		}
	}
	gaveUp := make(chan types.UID, 3)
	s.begin(t.Context(), summaryOf("one"), waits(gaveUp, "one"))
	s.begin(t.Context(), summaryOf("one"), func(context.Context) (string, *v1beta1.CallAccount) {
		t.Error("two summaries of a chat are asked for at once")
		return "", nil
	})
	s.begin(t.Context(), summaryOf("two"), waits(gaveUp, "two"))
	s.abandon(summaryOf("one"))
	check.Equal(t, "the summary that was given up", "one", <-gaveUp)
	s.begin(t.Context(), summaryOf("one"), waits(gaveUp, "one again"))
	s.stop()
	check.Equal(t, "summaries that were given up", 2, len(gaveUp))
	check.Equal(t, "a summary as a title", (caption{}), s.newestTitle("one"), sameCaption)
}
