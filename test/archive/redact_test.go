// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	store "parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/chat/history/redact"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// pasted is in an archive.
const pasted = "hunter2-2026"

// writeArchive writes the archive of a chat with the pasted text.
func writeArchive(t *testing.T, s *store.Store, uid string) {
	t.Helper()
	chat := chattest.In("redacted", chattest.Chat("old"))
	chat.UID, chat.CreationTimestamp, chat.Status.Title = types.UID(uid), metav1.NewTime(time.Now()), "What is "+pasted+"?"
	m := chattest.User("old", "asked", chattest.Content("It is "+pasted))
	chat.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Chat"))
	m.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatMessage"))
	_, err := s.Write(t.Context(), chat, func(yield func(store.Object, error) bool) {
		_ = yield(chat, nil) && yield(m, nil)
	})
	check.OK(t, err)
}

// textOf is the archive as it is read, with the title in its entry.
func textOf(t *testing.T, s *store.Store, uid string) string {
	t.Helper()
	e, err := s.Get(t.Context(), "redacted", "old", uid)
	check.OK(t, err)
	var text bytes.Buffer
	check.OK(t, s.Read(t.Context(), e, &text))
	return text.String() + e.Title
}

// TestNoFaultLosesARedactedArchive lets each request to the store fail, one after another, and all after it: before the
// store has seen it, and after. Each time the archive can be read, and the next redaction finishes.
func TestNoFaultLosesARedactedArchive(t *testing.T) {
	text, err := redact.New(pasted)
	check.OK(t, err)
	good := open(t, s3.url(s3.address), rightSecret)
	for _, fault := range []int{refuse, loseAnswer} {
		for n := 1; ; n++ {
			uid := fmt.Sprintf("u-%d-%d", fault, n)
			writeArchive(t, good, uid)
			requests := 0
			faulty := open(t, s3.url(s3.proxy(t, func(*http.Request) int {
				if requests++; requests >= n {
					return fault
				}
				return whatever
			})), rightSecret)
			_, err := faulty.Redact(t.Context(), "redacted", "old", uid, text, false)
			if left := textOf(t, good, uid); !strings.Contains(left, `"kind":"List"`) || !strings.Contains(left, "It is ") ||
				err == nil && strings.Contains(left, pasted) {
				t.Errorf("after a fault at request %d, the archive is %s", n, left)
			}
			_, again := good.Redact(t.Context(), "redacted", "old", uid, text, false)
			check.OK(t, again)
			if left := textOf(t, good, uid); strings.Contains(left, pasted) {
				t.Errorf("after the repetition, the archive is %s", left)
			}
			if err == nil {
				t.Logf("the store is asked %d times", n-1)
				break
			}
		}
	}
}

func TestDamagedRedactionKeepsTheArchive(t *testing.T) {
	text, err := redact.New(pasted)
	check.OK(t, err)
	good := open(t, s3.url(s3.address), rightSecret)
	writeArchive(t, good, "damaged")
	damaging := s3.proxy(t, func(r *http.Request) int {
		if r.Method == http.MethodPut {
			return damageRequest
		}
		return whatever
	})
	_, err = open(t, s3.url(damaging), rightSecret).Redact(t.Context(), "redacted", "old", "damaged", text, false)
	if left := textOf(t, good, "damaged"); err == nil || !strings.Contains(left, "It is "+pasted) {
		t.Errorf("after %v, the archive is %s", err, left)
	}
}

// TestChangeDuringWriteOfRedactionIsKept lets another gateway redact or delete the archive when the server receives a
// write of the redaction: first that of the object, then that of its entry.
func TestChangeDuringWriteOfRedactionIsKept(t *testing.T) {
	text, err := redact.New(pasted)
	check.OK(t, err)
	other, err := redact.New("What is")
	check.OK(t, err)
	good := open(t, s3.url(s3.address), rightSecret)
	redactAt := func(uid string) func() error {
		return func() error {
			_, err := good.Redact(t.Context(), "redacted", "old", uid, text, false)
			return err
		}
	}
	deleteAt := func(uid string) func() error {
		return func() error { return good.Delete(t.Context(), "redacted", "old", uid) }
	}
	for name, c := range map[string]struct {
		do   func(uid string) func() error
		want error
	}{"redact": {redactAt, store.ErrConflict}, "delete": {deleteAt, store.ErrNotFound}} {
		for n := 1; n <= 2; n++ {
			uid := fmt.Sprintf("during-%s-%d", name, n)
			writeArchive(t, good, uid)
			writes, do := 0, c.do(uid)
			slow := open(t, s3.url(s3.proxy(t, func(r *http.Request) int {
				if r.Method == http.MethodPut {
					if writes++; writes == n {
						check.OK(t, do())
					}
				}
				return whatever
			})), rightSecret)
			_, err := slow.Redact(t.Context(), "redacted", "old", uid, other, false)
			if !errors.Is(err, c.want) {
				t.Errorf("%s at write %d: got %v", name, n, err)
			}
			if errors.Is(c.want, store.ErrConflict) {
				_, err = good.Redact(t.Context(), "redacted", "old", uid, other, false)
				check.OK(t, err)
				if left := textOf(t, good, uid); strings.Contains(left, pasted) || strings.Contains(left, "What is") {
					t.Errorf("%s at write %d leaves %s", name, n, left)
				}
			} else if left, _, err := good.List(t.Context(), "redacted", "", 500, ""); err != nil ||
				slices.ContainsFunc(left, func(e store.Entry) bool { return e.UID == uid }) {
				t.Errorf("%s at write %d leaves %v, %v", name, n, left, err)
			}
		}
	}
}
