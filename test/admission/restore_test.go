// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// restored marks the object as one of a backup, written by somebody and changed by another.
func restored[T client.Object](o T) T {
	o.SetAnnotations(map[string]string{v1beta1.AnnotationRestoredFrom: "old", createdBy: "somebody", editedBy: "another"})
	if chat, ok := any(o).(*v1beta1.Chat); ok {
		chat.Annotations[v1beta1.AnnotationRestoring] = "old"
	}
	return o
}

// writesStatuses are the rights of the statusWriter.
func writesStatuses() []client.Object {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: statusWriter.name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1beta1.GroupVersion.Group}, Verbs: []string{"patch", "create"},
			Resources: []string{"chats", "chatmessages", "toolapprovals", "chats/status", "chatmessages/status",
				"toolapprovals/status"}}}}
	return []client.Object{role, &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, Subjects: person(statusWriter.name),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}}
}

const (
	askForRestore = "ask for the ClusterRole parley-restore"
	aStatus       = `{"status":{"observedGeneration":1}}`
	released      = `{"metadata":{"annotations":{"parley.dev/restoring":null}}}`
)

func TestOnlyRestorersCreateRestoredObjects(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for what, newObject := range map[string]func() client.Object{
		"a chat":    func() client.Object { return restored(newChat(unique("chat"))) },
		"a message": func() client.Object { return restored(say(s.chat.Name)) },
		"the message of a prompt": func() client.Object {
			return restored(chattest.In(ns, chattest.User("c", unique("c")+"-prompt")))
		},
		"a reply of a pod": func() client.Object { return restored(otherReply(s.chat)) },
		"an approval":      func() client.Object { return restored(approve(s.chat.Name)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var all []write
			for _, who := range []actor{owner, statusWriter} {
				all = append(all, write{who, "restores " + what, creates(newObject()), "denied request"})
			}
			for _, who := range []actor{restorer, boss, root, administrator} {
				all = append(all, write{who, "restores " + what, creates(newObject()), ""})
			}
			all = append(all, write{podA, "restores " + what, creates(newObject()), "forbidden"})
			byManager := write{manager, "restores " + what, creates(newObject()), "forbidden"}
			if _, isMessage := newObject().(*v1beta1.ChatMessage); isMessage { // A fork begins with copies of messages.
				byManager.refused = ""
			}
			try(t, append(all, byManager))
		})
	}
	redacted := restored(say(s.chat.Name))
	redacted.Annotations[v1beta1.AnnotationRedacted] = "before/now"
	try(t, []write{{chatter, "restores a chat", creates(restored(newChat(unique("chat")))), askForRestore},
		{restorer, "restores a message that was redacted", creates(redacted), ""},
		{approver, "restores an approval", creates(restored(approve(s.chat.Name))), askForRestore}})
}

// otherReply is a reply that a pod gave which is gone.
func otherReply(chat *v1beta1.Chat) *v1beta1.ChatMessage {
	reply := result(chat)
	g := reply.Spec.Generation
	g.HistoryVersion, g.Pod = 100+int64(rand.Intn(1<<30)), "parley-generation-gone"
	reply.Name = fmt.Sprintf("%s-%d-%d", chat.Name, g.HistoryVersion, g.Attempt)
	return reply
}

func TestRestoredObjectsKeepTheirAuthors(t *testing.T) {
	t.Parallel()
	chat := restored(newChat(unique("chat")))
	message := restored(say(chat.Name))
	for _, o := range []client.Object{chat, message} {
		mustCreate(t, restorer, o)
		check.Equal(t, "author", "somebody", stamp(t, o))
		check.Equal(t, "editor", "another", editor(t, o))
	}
	copied := restored(say(chat.Name))
	copied.Annotations[v1beta1.AnnotationRedacted] = "before/now"
	mustCreate(t, manager, copied)
	check.Equal(t, "author of a copy", "somebody", stamp(t, copied))
	check.Equal(t, "editor of a copy", "another", editor(t, copied))
}

func TestRestorersWriteStatusesUntilTheEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	chat := restored(newChat(unique("chat")))
	message, approval := restored(say(chat.Name)), restored(approve(chat.Name))
	for _, o := range []client.Object{chat, message, approval} {
		mustCreate(t, restorer, o)
	}
	theManagers := "only Parley's manager writes the status of "
	try(t, []write{
		{statusWriter, "writes the status of a chat that is being restored", patchesStatus(chat, aStatus), askForRestore},
		{statusWriter, "writes the status of a restored message", patchesStatus(message, aStatus), askForRestore},
		{statusWriter, "writes the status of a restored approval", patchesStatus(approval, aStatus), askForRestore},
		{restorer, "writes the status of a chat", patchesStatus(chat, aStatus), ""},
		{restorer, "writes it again", patchesStatus(chat, aStatus), ""},
		{restorer, "writes the status of a message", patchesStatus(message, aStatus), ""},
		{restorer, "writes it again", patchesStatus(message, aStatus), theManagers + "chatmessages"},
		{restorer, "writes the status of an approval", patchesStatus(approval, aStatus), ""},
		{restorer, "writes it again", patchesStatus(approval, aStatus), theManagers + "toolapprovals"},
		{restorer, "writes the status of another chat", patchesStatus(s.chat, aStatus), theManagers + "chats"},
		{restorer, "writes the status of another message", patchesStatus(s.asked, aStatus), theManagers + "chatmessages"},
		{restorer, "begins to restore a chat that exists", patches(s.chat,
			`{"metadata":{"annotations":{"parley.dev/restoring":"old"}}}`), "belong to kubectl chat restore"},
		{restorer, "changes the words of a message", patches(message, `{"spec":{"content":"other words"}}`), noRight},
		{statusWriter, "ends the restore", patches(chat, released), askForRestore},
		{owner, "ends the restore", patches(chat, released), askForRestore},
		{owner, "holds the chat meanwhile", patches(chat, `{"spec":{"suspend":true}}`), ""},
		{restorer, "ends the restore", patches(chat, released), ""},
		{restorer, "writes the status afterwards", patchesStatus(chat, aStatus), theManagers + "chats"},
		{owner, "removes the mark", patches(chat, `{"metadata":{"annotations":{"parley.dev/restored-from":null}}}`), ""},
	})
}

func TestTheManagerMayNotRestore(t *testing.T) {
	t.Parallel()
	for _, who := range []actor{manager, gateway, podA, owner} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: who.username(),
			Groups: []string{"system:authenticated"}, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns,
				Verb: "restore", Group: v1beta1.GroupVersion.Group, Resource: "chats"}}}
		check.OK(t, cluster.Client.Create(t.Context(), review))
		check.Equal(t, who.name+" may restore", false, review.Status.Allowed)
	}
}
