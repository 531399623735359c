// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

// TestMessageOfALaterReservedNameCanBeChanged creates a message as before the names of results were
// reserved.
func TestMessageOfALaterReservedNameCanBeChanged(t *testing.T) {
	s := newScene(t)
	named := func(suffix string) *v1alpha1.ChatMessage {
		m := say(s.chat.Name)
		m.Name += suffix
		return m
	}
	before, since := named("-2026-10"), named("-2026-11")
	user := as(t, owner)
	create := func(m *v1alpha1.ChatMessage) func(context.Context) bool {
		return func(ctx context.Context) bool { return creates(m)(ctx, user) == nil }
	}
	t.Cleanup(func() {
		if err := install(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	})
	const rules = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"
	if _, err := kubectl(t.Context(), "", "patch", "crd", "chatmessages.parley.dev", "--type=json",
		`-p=[{"op":"remove","path":"`+rules+`"}]`); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), "the names are free", create(before)); err != nil {
		t.Fatal(err)
	}
	if err := install(t.Context()); err != nil {
		t.Fatal(err)
	}
	reserved := func(ctx context.Context) bool { return !create(named("-2026-11"))(ctx) }
	if err := until(t.Context(), "the names are reserved", reserved); err != nil {
		t.Fatal(err)
	}
	try(t, []write{
		{owner, "creates a message with a reserved name", creates(since), "belong to generated messages"},
		{owner, "annotates one from before", patches(before, `{"metadata":{"annotations":{"a":"b"}}}`), ""},
		{owner, "edits it", patches(before, `{"spec":{"content":"Hello again"}}`), ""},
		{manager, "says where it stands", patchesStatus(before, `{"status":{"state":"Pending"}}`), ""},
		{owner, "deletes it", deletes(before), ""},
	})
}
