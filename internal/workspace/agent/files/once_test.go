// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
)

func TestAChangeIsMadeOnceForAKey(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "a-a\n")
	request := edits(protocol.Edit{Path: "file", OldText: "a", NewText: "aa", ReplaceAll: true})
	first, err := w.Edit(t.Context(), "chat-1-call", request)
	must(t, err)
	w.put("file", "somebody else's\n")
	for _, when := range []string{"at once", "after a restart"} {
		again, err := w.Edit(t.Context(), "chat-1-call", request)
		if err != nil || !reflect.DeepEqual(again, first) {
			t.Errorf("%s: got %+v, %v, want %+v", when, again, err, first)
		}
		w.open()
	}
	w.expect(map[string]string{"file": "somebody else's\n"})
}

func TestAWriteIsMadeOnceForAKey(t *testing.T) {
	w := newWorkspace(t)
	first, err := w.Write(t.Context(), "key", "file", "new")
	must(t, err)
	w.put("file", "somebody else's\n")
	again, err := w.Write(t.Context(), "key", "file", "new")
	if err != nil || !reflect.DeepEqual(again, first) || !again.Created {
		t.Errorf("got %+v, %v, want %+v", again, err, first)
	}
	w.expect(map[string]string{"file": "somebody else's\n"})
}

func TestAKeyIsForOneChange(t *testing.T) {
	w := newWorkspace(t)
	_, err := w.Write(t.Context(), "key", "file", "new")
	must(t, err)
	for name, try := range map[string]func() error{
		"another content": func() error { _, err := w.Write(t.Context(), "key", "file", "other"); return err },
		"another file":    func() error { _, err := w.Write(t.Context(), "key", "file2", "new"); return err },
		"an edit": func() error {
			_, err := w.Edit(t.Context(), "key", edits(protocol.Edit{Path: "file", NewText: "new"}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { refused(t, try(), protocol.BadRequest, "used before") })
	}
	w.expect(map[string]string{"file": "new"})
}

func TestRejectedChangeCanBeRetriedWithSameKey(t *testing.T) {
	w := newWorkspace(t)
	request := edits(protocol.Edit{Path: "file", OldText: "a", NewText: "b"})
	_, err := w.Edit(t.Context(), "key", request)
	refused(t, err, protocol.NotFound)
	w.put("file", "a")
	_, err = w.Edit(t.Context(), "key", request)
	must(t, err)
	w.expect(map[string]string{"file": "b"})
}

func TestKeysThatNameNoFileAreRefused(t *testing.T) {
	w := newWorkspace(t)
	for _, key := range []string{"../../canary", "a/b", ".hidden", "_mine", strings.Repeat("k", 201), "a\x00", "ä",
		" "} {
		_, err := w.Write(t.Context(), key, "file", "new")
		refused(t, err, protocol.BadRequest, "key")
	}
	w.expect(map[string]string{})
}

func TestKeysThatLookLikeRecordsAreKeptApart(t *testing.T) {
	w := newWorkspace(t)
	keys := []string{"k", "k.begun", "k.made", "k.unknown", "k.begun.made", "k.unfinished", strings.Repeat("k", 200)}
	for i, key := range keys {
		_, err := w.Write(t.Context(), key, fmt.Sprintf("file%d", i), "new")
		must(t, err)
	}
	w.open()
	for i, key := range keys {
		got, err := w.Write(t.Context(), key, fmt.Sprintf("file%d", i), "new")
		if err != nil || !got.Created {
			t.Errorf("%q was not known after a restart: %+v, %v", key, got, err)
		}
	}
}

func TestConcurrentEditsWithSameKeyApplyOnce(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "a\n")
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			_, err := w.Edit(t.Context(), "key", edits(protocol.Edit{Path: "file", OldText: "a", NewText: "aa",
				ReplaceAll: true}))
			if err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	w.expect(map[string]string{"file": "aa\n"})
}

func TestWaitForPendingChangeEndsWithContext(t *testing.T) {
	w := newWorkspace(t)
	w.committer.changing <- struct{}{}
	defer func() { <-w.committer.changing }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Write(ctx, "", "file", "new"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOldChangesAreForgotten(t *testing.T) {
	w := newWorkspace(t)
	answer := []byte(`{"request":"x","answer":{"path":"` + strings.Repeat("a", 100) + `"}}`)
	for i := range remembered + 5 {
		must(t, os.WriteFile(filepath.Join(w.state, "changes", fmt.Sprintf("key%04d%s", i, made)), answer, 0o600))
	}
	w.open()
	_, err := w.Write(t.Context(), "newest", "file", "new")
	must(t, err)
	for pass := range 2 {
		kept, err := filepath.Glob(filepath.Join(w.state, "changes", "*"))
		if err != nil || len(kept) != remembered || len(w.committer.journal.entries) != remembered {
			t.Errorf("pass %d: %d are kept, and %d known: %v", pass, len(kept), len(w.committer.journal.entries), err)
		}
		if state, _ := w.committer.journal.find("newest"); state != made {
			t.Errorf("pass %d: the newest is forgotten", pass)
		}
		w.open()
	}
	if state, _ := w.committer.journal.find("key0000"); state != unseen {
		t.Error("the oldest is known")
	}
}

func TestLargeAnswersAreForgottenSooner(t *testing.T) {
	w := newWorkspace(t)
	for i := range 5 {
		raw := []byte(`{"request":"` + strings.Repeat("x", rememberedBytes/4) + `"}`)
		must(t, os.WriteFile(filepath.Join(w.state, "changes", fmt.Sprintf("key%d%s", i, made)), raw, 0o600))
	}
	w.open()
	_, err := w.Write(t.Context(), "newest", "file", "new")
	must(t, err)
	if n := len(w.committer.journal.entries); n != 4 || w.committer.journal.entries[3].key != "newest" {
		t.Errorf("%d are known", n)
	}
}

func TestTheJournalsOwnFaultsAreTold(t *testing.T) {
	w := newWorkspace(t)
	must(t, os.RemoveAll(filepath.Join(w.state, "changes")))
	_, err := w.Write(t.Context(), "key", "file", "new")
	refused(t, err, protocol.NotFound, "journal of changes")
	w.expect(map[string]string{})
}
