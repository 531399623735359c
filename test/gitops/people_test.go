// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// progress is what a chat's status says of its history, which a needless rerun would move.
func progress(t *testing.T, ns, chat string) string {
	t.Helper()
	o := liveIn(t, ns, chat)
	return field(t, o, "status", "history", "version") + " " + field(t, o, "status", "history", "head")
}

// generations of what Git holds: they grow with each change of a spec.
func generations(t *testing.T, ns string, git repository) map[string]int64 {
	t.Helper()
	of := map[string]int64{}
	for _, name := range git.ids() {
		of[name] = liveIn(t, ns, name).GetGeneration()
	}
	return of
}

// specsUntouched checks that nobody has changed a spec since.
func specsUntouched(t *testing.T, ns string, before map[string]int64) {
	t.Helper()
	for name, generation := range before {
		if got := liveIn(t, ns, name).GetGeneration(); got != generation {
			t.Errorf("the spec of %s was changed: its generation is %d, not %d", name, got, generation)
		}
	}
}

// answeredChat brings up the chats and waits for every answer.
func answeredChat(t *testing.T, ns string, what tool) repository {
	t.Helper()
	git := checkOut(t, ns, "chats.yaml").without("Chat/broken")
	what.apply(t, git)
	playPods(t, ns)
	wait(t, ns, "Answered", append(messages, "ChatMessage/triage-prompt", "Chat/triage")...)
	return git
}

func TestAnnotationOutlivesReconciliationAndIsHeededOnce(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := checkOut(t, ns, "chats.yaml").without("Chat/broken").without(messages...)
		what.apply(t, git)
		running(t, ns, "Chat/triage")
		person(t, ns, "annotate", "chat", "triage", "parley.dev/interrupt=first")
		eventually(t, "the chat is being interrupted", func() bool {
			return strings.Contains(field(t, liveIn(t, ns, "Chat/triage"), "status", "requests"), "token:first")
		})
		playPods(t, ns)
		wait(t, ns, "Interrupted", "Chat/triage")
		before, specs := progress(t, ns, "Chat/triage"), generations(t, ns, git)

		if drifted := what.drift(t, git); len(drifted) > 0 {
			t.Errorf("drift: %v", drifted)
		}
		// Flux takes back what kubectl did to its objects, the annotation as well. The request is on record.
		what.apply(t, git)
		person(t, ns, "annotate", "chat", "triage", "parley.dev/interrupt=first", "--overwrite")
		what.apply(t, git)
		unchanged(t, what, ns, git)
		specsUntouched(t, ns, specs)
		if got := progress(t, ns, "Chat/triage"); got != before {
			t.Errorf("the history went from %s to %s", before, got)
		}
	})
}

func TestFieldAbsentFromGitKeepsManualEdit(t *testing.T) {
	suspend := []string{"patch", "chat", "triage", "--type", "merge", "--patch", `{"spec":{"suspend":true}}`}
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := answeredChat(t, ns, what).edited(t, "Chat/triage", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{fluxGroup + "/ssa": "Merge"})
		})
		what.apply(t, git)
		person(t, ns, suspend...)
		if drifted := what.drift(t, git); len(drifted) > 0 {
			t.Errorf("drift: %v", drifted)
		}
		unchanged(t, what, ns, git)
		if got := field(t, liveIn(t, ns, "Chat/triage"), "spec", "suspend"); got != "true" {
			t.Errorf("spec.suspend is %q", got)
		}
	})
	t.Run("Flux without its annotation", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t)
		f := fluxIn(ns)
		git := answeredChat(t, ns, f)
		person(t, ns, suspend...)
		f.apply(t, git)
		if got := field(t, liveIn(t, ns, "Chat/triage"), "spec", "suspend"); got != "" {
			t.Errorf("spec.suspend is %q", got)
		}
		unchanged(t, f, ns, git)
	})
}

func TestManualEditOfGitFieldRevertsWithoutRerun(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := answeredChat(t, ns, what)
		before := progress(t, ns, "Chat/triage")
		person(t, ns, "patch", "chat", "triage", "--type", "merge", "--patch", `{"spec":{"systemPrompt":"Be long."}}`)
		if drifted := what.drift(t, git); len(drifted) == 0 || !strings.HasPrefix(drifted[0], "Chat/triage") {
			t.Errorf("the drift is %v", drifted)
		}
		what.apply(t, git)
		if got := field(t, liveIn(t, ns, "Chat/triage"), "spec", "systemPrompt"); !strings.Contains(got, "Be brief.") {
			t.Errorf("the system prompt is %q", got)
		}
		unchanged(t, what, ns, git)
		if got := progress(t, ns, "Chat/triage"); got != before {
			t.Errorf("the history went from %s to %s", before, got)
		}
	})
}

func TestPersonAndToolApplyTheSameManifests(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		for _, by := range []kubectl{{ns: ns}, {ns: ns, serverSide: true}} {
			by.apply(t, checkOut(t, ns, "chats.yaml").without("Chat/broken"))
		}
		git := answeredChat(t, ns, what)
		specs, identities, before := generations(t, ns, git), uids(t, ns, git), progress(t, ns, "Chat/triage")
		for _, by := range []kubectl{{ns: ns}, {ns: ns, serverSide: true}} {
			by.apply(t, git)
			what.apply(t, git)
		}
		unchanged(t, what, ns, git)
		specsUntouched(t, ns, specs)
		same(t, ns, git, identities)
		if got := progress(t, ns, "Chat/triage"); got != before {
			t.Errorf("the history went from %s to %s", before, got)
		}
	})
}

func TestConflictNamesTheOwnerOfAField(t *testing.T) {
	for _, name := range []string{"Flux", "Argo CD, server-side"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			what := controllers[name](t, ns)
			git := checkOut(t, ns, "chats.yaml")
			what.apply(t, git)
			running(t, ns, "Chat/triage")
			other := git.edited(t, "Chat/triage",
				func(o *unstructured.Unstructured) { set(t, o, "Be long.", "spec", "systemPrompt") })
			out, code := run(t, ns, manifests(t, other), "apply", "--server-side", "-f", "-")
			if code == 0 || !strings.Contains(out, what.managers()[0]) || !strings.Contains(out, ".spec.systemPrompt") {
				t.Errorf("kubectl ended with %d: %s", code, out)
			}
			if strings.Contains(out, operator) {
				t.Errorf("there is a conflict with the operator: %s", out)
			}
		})
	}
}

func TestOwnObjectsLiveBesideThoseOfGit(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := answeredChat(t, ns, what)
		own := checkOut(t, ns, "person.yaml")
		for _, by := range []kubectl{{ns: ns}, {ns: ns, serverSide: true}} {
			by.apply(t, own)
			wait(t, ns, "Answered", "ChatMessage/triage-person", "Chat/own", "Chat/triage")
			unchanged(t, what, ns, git)
			unchanged(t, by, ns, own)
		}
		if drifted := what.drift(t, git); slices.ContainsFunc(drifted,
			func(d string) bool { return strings.Contains(d, "person") }) {
			t.Errorf("drift: %v", drifted)
		}
	})
}
