// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

func TestNoteAppearsDuringStreamAndSkipsModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowThenQuick())
	everybody := &v1alpha1.ChatClass{ObjectMeta: w.meta("everybody"),
		Spec: v1alpha1.ChatClassSpec{Default: true, NamespacePreamble: "Be lawful."}}
	writer := &v1alpha1.ChatClass{ObjectMeta: w.meta("writer"), Spec: v1alpha1.ChatClassSpec{Preamble: "You write."}}
	w.create(everybody)
	w.create(writer)
	w.inForce(everybody)
	w.inForce(writer)
	w.create(&v1alpha1.Chat{ObjectMeta: w.meta("c"),
		Spec: v1alpha1.ChatSpec{ChatClassName: "writer", Prompt: "Tell me a long story."}})
	out := &growing{}
	tail := w.plugin("tail", "c")
	tail.Stdout, tail.Stderr = out, out
	check.OK(t, tail.Start())
	w.eventually("the first words are shown", func() bool { return strings.Contains(out.String(), "word0 word1") })
	note := w.plugin("send", "c", "the customer has called", "--visibility", "People")
	note.Stderr = os.Stderr
	check.OK(t, note.Run())
	w.eventually("the note is shown", func() bool { return strings.Contains(out.String(), "▎  the customer has called") })
	if got := w.chat("c").Status; got.Phase != v1alpha1.ChatRunning || got.History.Length != 1 || len(got.Queue) > 0 {
		t.Errorf("the note was no note to the chat: %+v", got)
	}
	w.patch(w.chat("c"), `{"metadata":{"annotations":{%q:"now"}}}`, v1alpha1.AnnotationInterrupt)
	w.ready("c", 2)
	w.say("c", "again", "And now?")
	w.ready("c", 4)
	_ = tail.Process.Kill()
	_ = tail.Wait() // It was killed.
	for i, r := range w.requests() {
		body := string(r.Body)
		if strings.Contains(body, "customer") || !strings.Contains(body, `"Be lawful.\n\nYou write.`) {
			t.Errorf("request %d is %s", i, body)
		}
	}
}
