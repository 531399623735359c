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
	var store titles
	of := beginning{chat: "c", message: "m", edition: 1}
	store.begin(t.Context(), of, answered)
	store.begin(t.Context(), of, func(context.Context) (string, *v1alpha1.CallAccount) {
		t.Error("a title was asked for twice")
		return "", nil
	})
	store.stop()
	if got := store.of(of); got != "A title" {
		t.Errorf("the title is %q", got)
	}
	call := store.takeCall(of)
	if call == nil || store.takeCall(of) != nil {
		t.Error("a call is not accounted for once")
	}
	store.returnCall(of, call)
	if store.takeCall(of) != call {
		t.Error("a call whose result did not come to be is not accounted for later")
	}
	if got := store.begun("c"); got != of {
		t.Errorf("the newest title of the chat is of %+v", got)
	}
	if got := store.begun("another"); got != (beginning{}) {
		t.Errorf("the newest title of another chat is of %+v", got)
	}
}

func TestATitleThatNobodyWaitsForIsGivenUpAndMayBeAskedForAgain(t *testing.T) {
	var store titles
	of, gaveUp := beginning{chat: "c"}, make(chan struct{})
	store.begin(t.Context(), of, func(ctx context.Context) (string, *v1alpha1.CallAccount) {
		<-ctx.Done()
		close(gaveUp)
		return "", nil
	})
	store.abandon(of)
	<-gaveUp
	store.begin(t.Context(), of, answered)
	store.stop()
	if got := store.of(of); got != "A title" {
		t.Errorf("the title is %q", got)
	}
}

func TestTitlesThatAreKeptAreBounded(t *testing.T) {
	var store titles
	for n := range int64(maxTitles + 1) {
		store.begin(t.Context(), beginning{chat: "c", edition: n}, answered)
	}
	store.stop()
	if len(store.made) != maxTitles || len(store.order) != maxTitles || store.of(beginning{chat: "c"}) != "" {
		t.Errorf("%d titles are kept", len(store.made))
	}
}

func TestNothingIsAskedOnceTheProcessEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	var made titles
	made.begin(ended, beginning{}, func(context.Context) (string, *v1alpha1.CallAccount) {
		t.Error("a title is asked for")
		return "", nil
	})
	made.stop()
	var told summaries
	told.begin(ended, "c", func(context.Context) { t.Error("a summary is asked for") })
	told.stop()
}

func TestASummaryIsGivenUpWhenItsChatGoesOn(t *testing.T) {
	var store summaries
	waits := func(gaveUp chan types.UID, chat types.UID) func(context.Context) {
		return func(ctx context.Context) {
			<-ctx.Done()
			gaveUp <- chat
		}
	}
	gaveUp := make(chan types.UID, 3)
	store.begin(t.Context(), "one", waits(gaveUp, "one"))
	store.begin(t.Context(), "one", func(context.Context) { t.Error("two summaries of a chat are asked for at once") })
	store.begin(t.Context(), "two", waits(gaveUp, "two"))
	store.abandon("one")
	if got := <-gaveUp; got != "one" {
		t.Errorf("the summary of %s was given up", got)
	}
	store.begin(t.Context(), "one", waits(gaveUp, "one again"))
	store.stop()
	if len(gaveUp) != 2 || len(store.asked) != 0 {
		t.Errorf("%d were given up in the end, %d are under way", len(gaveUp), len(store.asked))
	}
}
