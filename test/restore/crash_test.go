// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/backup"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/faultclient"
	"parley.dev/parley/test/kit/modeltest"
)

// restore restores a backup into the room with requests that go through the process.
func (r *room) restore(yaml string, p *faultclient.Process) *backup.Report {
	r.t.Helper()
	b, err := backup.Parse(strings.NewReader(yaml))
	check.OK(r.t, err)
	cfg := as(r.Cluster, r.ns, "restorer")
	if p != nil {
		cfg = p.Config(cfg)
	}
	return r.restoreWith(b, cfg)
}

func (r *room) restoreWith(b *backup.Backup, cfg *rest.Config) *backup.Report {
	r.t.Helper()
	c, err := apiclient.New(cfg, "restore-test")
	check.OK(r.t, err)
	report, err := backup.Restore(r.t.Context(), c, b, backup.Options{Namespace: r.ns, Now: time.Now})
	check.OK(r.t, err)
	return report
}

// succeeds fails the test for each object that was not restored.
func succeeds(t *testing.T, report *backup.Report) {
	t.Helper()
	for _, result := range report.Results {
		if result.Err != nil {
			t.Errorf("%s %s: %v", result.Kind, result.Name, result.Err)
		}
	}
}

// newFamily is a scene with a chat whose sub-chat waits for approval, with a message in its queue.
func newFamily(t *testing.T) *room {
	t.Helper()
	_, url := newModel(t)
	r := newRoom(t, origin)
	r.create(modeltest.Config("default", url, chattest.Default, func(s *v1beta1.ChatModelConfigSpec) {
		s.APIKey = nil
		modeltest.Priced(s)
	}), chattest.Chat("root", chattest.Prompt("hello")))
	r.awaitMessage("root-prompt", v1beta1.ReasonAnswered)
	r.create(chattest.Chat("sub", chattest.Prompt("what time is it?"), chattest.ChildOf("root"), approval))
	r.awaitChat("sub", v1beta1.ReasonRequiresAction)
	r.approves("sub")
	r.awaitMessage("sub-prompt", v1beta1.ReasonAnswered)
	r.create(chattest.User("sub", "sub-1", chattest.Content("what time is it now?")))
	r.awaitChat("sub", v1beta1.ReasonRequiresAction)
	r.awaitMessage("sub-1", v1beta1.ReasonAnswering)
	r.create(chattest.User("sub", "sub-2"))
	r.awaitMessage("sub-2", v1beta1.ReasonQueued)
	return r
}

// awaitRestored waits until the operator has taken over the chats.
func (r *room) awaitRestored(names ...string) {
	r.t.Helper()
	for _, name := range names {
		r.eventually("the operator has chat "+name, func() bool {
			chat := r.get(name)
			return !chat.IsRestoring() && reasonOf(chat.Status.Conditions, 1) != string(v1beta1.ReasonRestoring)
		})
	}
}

func TestInterruptedRestoreContinuesAtAnyWrite(t *testing.T) {
	from := newFamily(t)
	yaml, before := from.kubectl("get", kinds, "-o", "yaml"), from.views()
	counter := faultclient.New(faultclient.Options{})
	succeeds(t, newRoom(t, target).restore(yaml, counter))
	for n, write := range counter.Writes() {
		for name, effect := range map[string]faultclient.Effect{
			"is not sent": faultclient.Fails, "is applied": faultclient.TimesOut} {
			t.Run(fmt.Sprintf("%s %s", write, name), func(t *testing.T) {
				t.Parallel()
				to := newRoom(t, target)
				dies := faultclient.New(faultclient.Options{Fault: &faultclient.Fault{Effect: effect, Dies: true,
					At: func(i int, _ faultclient.Write) bool { return i == n+1 }}})
				to.restore(yaml, dies)
				if !dies.Struck() {
					t.Fatal("the restore was not interrupted")
				}
				succeeds(t, to.restore(yaml, nil))
				to.awaitRestored("root", "sub")
				check.Equal(t, "chats", before, to.views())
			})
		}
	}
}

func TestInterruptedRestoreRefusesAnotherBackup(t *testing.T) {
	from := newFamily(t)
	yaml, before := from.kubectl("get", kinds, "-o", "yaml"), from.views()
	from.say("root", "root-1", "more")
	later := from.kubectl("get", kinds, "-o", "yaml")
	to := newRoom(t, target)
	ofMessage := func(_ int, w faultclient.Write) bool { return w.Resource == "chatmessages" }
	to.restore(yaml, faultclient.New(faultclient.Options{Fault: &faultclient.Fault{Effect: faultclient.TimesOut,
		Dies: true, At: ofMessage}}))
	check.Equal(t, "failures", map[string]string{
		"root": "its restore began with another backup: continue with that backup, or delete the chat and restore again",
		"sub":  "chat root, which is above it, is not restored",
	}, failures(to.restore(later, nil)))
	succeeds(t, to.restore(yaml, nil))
	to.awaitRestored("root", "sub")
	check.Equal(t, "chats", before, to.views())
}

func TestHeldChatDoesNothingUntilReleased(t *testing.T) {
	from := newFamily(t)
	yaml := from.kubectl("get", kinds, "-o", "yaml")
	to := newRoom(t, target)
	released := func(_ int, w faultclient.Write) bool { return w.Verb == "patch" && w.Resource == "chats" }
	to.restore(yaml, faultclient.New(faultclient.Options{Fault: &faultclient.Fault{Effect: faultclient.Fails,
		Dies: true, At: released}}))
	for _, name := range []string{"root", "sub"} {
		to.awaitChat(name, v1beta1.ReasonRestoring)
		check.Equal(t, "wait", v1beta1.WaitForRestore, to.get(name).Status.Wait.For)
	}
	to.create(chattest.User("root", "root-1"))
	var m v1beta1.ChatMessage
	restored := to.get("root").Status
	succeeds(t, to.restore(yaml, nil))
	to.awaitMessage("root-1", v1beta1.ReasonAnswered) // By a chat that has its history.
	check.OK(t, to.Client.Get(t.Context(), client.ObjectKey{Namespace: to.ns, Name: "root-1"}, &m))
	check.Equal(t, "place of the new message", restored.History.Length, *m.Status.Index)
}

func TestOtherObjectOfTheNameStaysAndFails(t *testing.T) {
	from := newFamily(t)
	yaml := from.kubectl("get", kinds, "-o", "yaml")
	to := newRoom(t, target)
	to.create(chattest.Chat("root"))
	check.Equal(t, "failures", map[string]string{
		"root": "another chat has its name: delete that chat, or restore into another namespace",
		"sub":  "chat root, which is above it, is not restored",
	}, failures(to.restore(yaml, nil)))
	succeeds(t, from.restore(yaml, nil)) // There they are as they were.
}

// failures are the errors of a report by the names of the objects.
func failures(report *backup.Report) map[string]string {
	failed := map[string]string{}
	for _, r := range report.Results {
		if r.Err != nil {
			failed[r.Name] = r.Err.Error()
		}
	}
	return failed
}

func TestFamilyIsHeldUntilAllIsRestored(t *testing.T) {
	from := newFamily(t)
	yaml, before := from.kubectl("get", kinds, "-o", "yaml"), from.views()
	to := newRoom(t, target)
	inTheWay := chattest.User("other", "sub-1")
	to.create(inTheWay)
	check.Equal(t, "failures", map[string]string{
		"root": "it is held until the restore is repeated, because chat sub failed",
		"sub":  "creating sub-1: another object has its name: delete that, and restore again",
	}, failures(to.restore(yaml, nil)))
	to.awaitChat("root", v1beta1.ReasonRestoring)
	check.OK(t, to.Client.Delete(t.Context(), inTheWay))
	succeeds(t, to.restore(yaml, nil))
	to.awaitRestored("root", "sub")
	check.Equal(t, "chats", before, to.views())
	to.kubectl("delete", "chat", "sub")
	check.Equal(t, "failures", map[string]string{"sub": "chat root, which is above it, exists: delete that to restore the family"},
		failures(to.restore(yaml, nil)))
}

func TestChatsOlderThanTheirClassAreRestored(t *testing.T) {
	_, url := newModel(t)
	from, to := newRoom(t, origin), newRoom(t, target)
	config := func(name string, change ...func(*v1beta1.ChatModelConfigSpec)) client.Object {
		return modeltest.Config(name, url, append(change, func(s *v1beta1.ChatModelConfigSpec) { s.APIKey = nil })...)
	}
	inClass := func(c *v1beta1.Chat) { c.Spec.ChatClassName = "strict" }
	other := func(c *v1beta1.Chat) { c.Spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "other"} }
	check.OK(t, from.Client.Create(t.Context(), chattest.In(from.ns, chattest.Class("strict"))))
	from.create(config("default", chattest.Default), config("other"),
		chattest.Chat("root", chattest.Prompt("hello"), inClass))
	from.awaitMessage("root-prompt", v1beta1.ReasonAnswered)
	from.create(chattest.Chat("sub", chattest.Prompt("hello"), chattest.ChildOf("root"), inClass, other))
	from.awaitMessage("sub-prompt", v1beta1.ReasonAnswered)
	check.OK(t, to.Client.Create(t.Context(), chattest.In(to.ns, chattest.Class("strict", func(s *v1beta1.ChatClassSpec) {
		s.Restrictions = &v1beta1.ChatRestrictions{ModelConfigs: []v1beta1.ModelConfigReference{{Name: "default"}}}
	}))))
	to.eventually("the class is in force", func() bool {
		return apierrors.IsForbidden(to.client("alice").Create(t.Context(), chattest.In(to.ns, chattest.Chat("new", inClass,
			other)), client.DryRunAll))
	})
	succeeds(t, to.restore(from.kubectl("get", "chats,chatmessages,chatmodelconfigs", "-o", "yaml"), nil))
	to.awaitRestored("root", "sub")
	check.Equal(t, "messages of the sub-chat", 2, to.get("sub").Status.History.Length)
}

func TestMessageNewerThanItsChatIsAnswered(t *testing.T) {
	from := newFamily(t)
	chats := from.kubectl("get", "chats", "-o", "yaml")
	from.say("root", "root-1", "more")
	to := newRoom(t, target)
	others := from.kubectl("get", "chatmessages,toolapprovals,chatmodelconfigs", "-o", "yaml")
	succeeds(t, to.restore(chats+"---\n"+others, nil))
	to.awaitMessage("root-1", v1beta1.ReasonAnswered)
	check.Equal(t, "messages", 4, to.get("root").Status.History.Length)
}
