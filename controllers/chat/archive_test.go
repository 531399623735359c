// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

// archiving is a world whose chat is to be archived and deleted with the next reconcile.
func archiving(t *testing.T, store *archive.Store) *world {
	t.Helper()
	w := expired(t)
	w.change(func(c *v1beta1.Chat) { c.Spec.Retention.Archive = new(true) })
	w.options.Archive = store
	w.later(time.Minute)
	return w
}

func newStore(t *testing.T) *archive.Store {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { check.OK(t, bucket.Close()) })
	return archive.New(bucket, func() time.Time { return now })
}

// archived is what the store has of the chat; empty if it has nothing.
func archived(t *testing.T, store *archive.Store) string {
	t.Helper()
	e, err := store.Get(t.Context(), "ns", "c", "chat-uid")
	if errors.Is(err, archive.ErrNotFound) {
		return ""
	}
	check.OK(t, err)
	var text bytes.Buffer
	check.OK(t, store.Read(t.Context(), e, &text))
	return text.String()
}

func TestExpiredChatIsArchivedBeforeDeletion(t *testing.T) {
	store := newStore(t)
	w := archiving(t, store)
	var messages v1beta1.ChatMessageList
	check.OK(t, w.Direct.List(t.Context(), &messages))
	w.mustReconcile()
	text := archived(t, store)
	if w.isThere() || !strings.Contains(text, `"kind":"Chat"`) {
		t.Errorf("the chat is there: %v; its archive is %s", w.isThere(), text)
	}
	for i := range messages.Items {
		if !strings.Contains(text, `"name":"`+messages.Items[i].Name+`"`) {
			t.Errorf("message %s is missing in %s", messages.Items[i].Name, text)
		}
	}
}

func TestChatIsKeptWhileItCannotBeArchived(t *testing.T) {
	w := archiving(t, nil)
	if result := w.mustReconcile(); result.RequeueAfter != time.Nanosecond {
		t.Errorf("the status is written after %v", result.RequeueAfter)
	}
	result := w.mustReconcile()
	condition := meta.FindStatusCondition(w.chat().Status.Conditions, v1beta1.ConditionArchiveUnavailable)
	if condition == nil || condition.Reason != string(v1beta1.ReasonArchiveNotConfigured) ||
		!strings.Contains(condition.Message, "--archive-url") {
		t.Errorf("the condition is %+v", condition)
	}
	if wait := w.chat().Status.Wait; wait == nil || wait.For != v1beta1.WaitForArchiveStore ||
		wait.Message != condition.Message {
		t.Errorf("it waits for %+v", wait)
	}
	if result.RequeueAfter <= 0 || result.RequeueAfter > archiveRetry {
		t.Errorf("the next try is in %v", result.RequeueAfter)
	}
	store := newStore(t)
	w.options.Archive = store
	w.later(2 * time.Minute) // Another manager begins, with a store.
	if w.mustReconcile(); w.isThere() || archived(t, store) == "" {
		t.Error("the chat is still there")
	}
}

func TestPausesGrowWithEachFailedArchive(t *testing.T) {
	var failures archiveFailures
	c := chattest.In("ns", chattest.Chat("c", chattest.UID("u")))
	at := now
	for tries := 1; tries <= 12; tries++ {
		failures.put(c, errNoStore, at)
		if left := failures.left(c, at); left != archiveRetry*time.Duration(min(tries, 10)) {
			t.Errorf("after %d tries the pause is %v", tries, left)
		}
	}
	if left := failures.left(chattest.In("ns", chattest.Chat("c", chattest.UID("another"))), at); left > 0 {
		t.Errorf("another chat of the name waits for %v", left)
	}
}

func TestChatThatLosesItsRetentionStopsWaiting(t *testing.T) {
	w := archiving(t, nil)
	w.mustReconcile()
	w.mustReconcile()
	w.change(func(c *v1beta1.Chat) { c.Spec.Retention = nil })
	w.mustReconcile()
	if st := w.chat().Status; st.Wait != nil || meta.FindStatusCondition(st.Conditions,
		v1beta1.ConditionArchiveUnavailable) != nil {
		t.Errorf("it waits for %+v", st.Wait)
	}
}

func TestNoteDuringArchivingPostponesDeletion(t *testing.T) {
	store := newStore(t)
	w := archiving(t, store)
	reads := 0
	w.Fail = func(call string) error {
		if call != "live get chat" {
			return nil
		}
		if reads++; reads == 3 { // The archive is written, and what is in it is compared.
			check.OK(t, w.Direct.Create(t.Context(), chattest.In("ns", chattest.User("c", "late", toUsers))))
		}
		return nil
	}
	if result := w.mustReconcile(); !w.isThere() || result.RequeueAfter != lookAtRest || reads != 4 {
		t.Fatalf("after %d reads the chat is there: %v", reads, w.isThere())
	}
	if w.mustReconcile(); w.isThere() || !strings.Contains(archived(t, store), `"name":"late"`) {
		t.Error("the note is not in the archive")
	}
}

func TestDeletionDuringArchivingKeepsTheFormerArchive(t *testing.T) {
	store := newStore(t)
	w := archiving(t, store)
	former := w.chat()
	_, err := store.Write(t.Context(), former, func(yield func(archive.Object, error) bool) { yield(former, nil) })
	check.OK(t, err)
	want, deleted := archived(t, store), false
	w.Fail = func(call string) error {
		if call == "live list toolapprovals" && !deleted { // Another manager deletes the chat, and its messages.
			deleted = true
			check.OK(t, w.Direct.Delete(t.Context(), w.chat()))
			check.OK(t, w.Direct.DeleteAllOf(t.Context(), &v1beta1.ChatMessage{}, client.InNamespace("ns")))
		}
		return nil
	}
	if _, err := w.reconcile(); !deleted || !apierrors.IsNotFound(err) {
		t.Errorf("the reconcile ends with %v", err)
	}
	check.Equal(t, "archive", want, archived(t, store))
}

// TestArchivingSurvivesFaultsOfTheAPIServer holds that a chat is gone only if its archive is complete.
func TestArchivingSurvivesFaultsOfTheAPIServer(t *testing.T) {
	(&fakeapi.Reconcile{
		Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
			store := newStore(t)
			w := archiving(t, store)
			t.Cleanup(func() {
				if text := archived(t, store); !w.isThere() && !strings.Contains(text, `"kind":"ChatMessage"`) {
					t.Errorf("the chat is gone, and its archive is %q", text)
				}
			})
			return w.Server, w.Reconciler
		},
		Request: ofChat, State: []client.ObjectList{&v1beta1.ChatList{}, &v1beta1.ChatMessageList{}},
		Settled: map[string][]fakeapi.Fault{"get chat": {fakeapi.NotFound}, "delete chat": {fakeapi.NotFound}},
	}).Run(t)
}
