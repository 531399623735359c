// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
)

// TestIdleFamilyExpiresTogetherWithWorkspace also loses the manager that knew when.
func TestIdleFamilyExpiresTogetherWithWorkspace(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, works(callOf("execute", map[string]any{"command": "echo hello"})))
	w.template("shell")
	class := w.coder(careful)
	class.Spec.Restrictions.Tools.Approval = nil
	class.Spec.Defaults.Retention = &v1alpha1.ChatRetention{DeleteAfterSeconds: new(int32(3600))}
	w.create(class)
	w.inForce(class)
	w.newChat("c", "Fix the build.")
	w.ready("c", 4)
	below := &v1alpha1.Chat{ObjectMeta: w.meta("below")}
	below.Spec.ParentRef, below.Spec.Prompt = &v1alpha1.ChatReference{Name: "c"}, "Look."
	w.create(below)
	w.ready("below", 4)
	rested := w.chat("below").Status.RestingSince.Time
	w.eventually("the chat says when it goes", func() bool {
		at := w.chat("c").Status.ExpiresAt
		return at != nil && at.Sub(rested) == time.Hour
	})
	const said = "# ChatClass coder\nretention:\n  deleteAfterSeconds: 3600\n"
	check.Contains(t, w.kubectlChat("settings", "c"), said)

	soon := int(time.Since(rested)/time.Second) + 20
	w.patch(class, `{"spec":{"defaults":{"retention":{"deleteAfterSeconds":%d}}}}`, soon)
	w.eventually("the class counts", func() bool {
		return w.chat("c").Status.ExpiresAt.Sub(rested) == time.Duration(soon)*time.Second
	})
	killTheManager(w, &step{})
	w.eventually("chats, messages, workspace and pod are gone", func() bool {
		return w.none(&v1alpha1.ChatList{}) && w.none(&v1alpha1.ChatMessageList{}) && w.none(&v1alpha1.WorkspaceList{}) &&
			w.housing() == nil
	})
	if early := time.Until(rested.Add(time.Duration(soon) * time.Second)); early > time.Second {
		t.Errorf("they went %v early", early)
	}
	w.eventually("an Event says so", func() bool {
		var events eventsv1.EventList
		check.OK(t, c.List(t.Context(), &events, client.InNamespace(w.ns)))
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == string(v1alpha1.EventExpired) && e.Regarding.Name == "c" {
				return true
			}
		}
		return false
	})
}

// none reports whether the namespace has no objects of that kind.
func (w *world) none(list client.ObjectList) bool {
	w.t.Helper()
	check.OK(w.t, c.List(w.t.Context(), list, client.InNamespace(w.ns)))
	return meta.LenList(list) == 0
}
