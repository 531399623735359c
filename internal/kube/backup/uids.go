// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
)

// uids are the UIDs of restored objects by those in the backup. A UID that is not here is of an object that is gone: it
// stays, and no object has it.
type uids map[string]string

func (u uids) replace(uid *string) {
	if now, found := u[*uid]; found {
		*uid = now
	}
}

// metadata is that of a new object for one of the backup. Of the owners, only restored chats stay: the garbage
// collector deletes an object whose owners do not exist.
func (u uids) metadata(old *metav1.ObjectMeta, namespace string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: old.Name, Labels: old.Labels,
		Annotations: maps.Clone(old.Annotations)}
	delete(meta.Annotations, v1beta1.AnnotationRedacting) // The redaction ended with the old object.
	metav1.SetMetaDataAnnotation(&meta, v1beta1.AnnotationRestoredFrom, string(old.UID))
	for _, owner := range old.OwnerReferences {
		if now, found := u[string(owner.UID)]; found {
			owner.UID = types.UID(now)
			meta.OwnerReferences = append(meta.OwnerReferences, owner)
		}
	}
	return meta
}

// newChat is the Chat to create, which the operator holds.
func (u uids) newChat(m *member, namespace string) *v1beta1.Chat {
	chat := &v1beta1.Chat{ObjectMeta: u.metadata(&m.chat.ObjectMeta, namespace), Spec: m.chat.Spec}
	chat.Annotations[v1beta1.AnnotationRestoring] = m.backup
	chat.Spec.Sharing = nil // A backup does not decide who reads the chat now, or who has a name in another cluster.
	return chat
}

func (u uids) newMessage(old *v1beta1.ChatMessage, namespace string) *v1beta1.ChatMessage {
	m := &v1beta1.ChatMessage{ObjectMeta: u.metadata(&old.ObjectMeta, namespace), Spec: *old.Spec.DeepCopy()}
	if m.Spec.Generation != nil {
		u.replace(&m.Spec.Generation.ChatUID)
	}
	u.commits(m.Spec.Follows)
	return m
}

func (u uids) commits(commits []v1beta1.CommittedMessage) {
	for i := range commits {
		u.replace(&commits[i].UID)
	}
}

// chatStatus is the status of a restored chat. What depends on other objects of the cluster, the operator finds out
// again, and waits start again.
func (u uids) chatStatus(old, live *v1beta1.Chat, now time.Time) *v1beta1.ChatStatus {
	st := old.Status.DeepCopy()
	if st.Root != nil {
		u.replace(&st.Root.UID)
	}
	u.replace(&st.Internal.ParentUID)
	u.replace(&st.Internal.Turn.MessageUID)
	u.commits(st.Internal.Tail)
	for i := range st.Internal.SubChatCosts {
		u.replace(&st.Internal.SubChatCosts[i].UID)
	}
	st.ChatClass, st.Settings, st.NamespaceClass = nil, nil, nil
	restartWaits(st, now)
	conditions.Chat(st, conditions.ChatFacts{Restoring: true, Generation: live.Generation, Now: now})
	return st
}

// restartWaits gives people the time to answer, and the retention its time, that they had when the backup was made.
func restartWaits(st *v1beta1.ChatStatus, now time.Time) {
	if required := st.RequiresAction; required != nil && st.Wait != nil {
		required.Deadline = metav1.NewTime(now.Add(required.Deadline.Sub(st.Wait.Since.Time)))
	}
	if st.Turn != nil {
		for i := range st.Turn.WaitingFor {
			if wait := &st.Turn.WaitingFor[i]; wait.Deadline != nil {
				wait.Deadline = new(metav1.NewTime(now.Add(time.Duration(wait.TimeoutSeconds) * time.Second)))
			}
		}
	}
	if st.IdleSince != nil {
		st.IdleSince = new(metav1.NewTime(now))
	}
	st.ExpiresAt, st.WaitingSince = nil, nil
}

// messageStatus is the status of a restored message of a person or a client.
func (u uids) messageStatus(old, live *v1beta1.ChatMessage) *v1beta1.ChatMessageStatus {
	st := old.Status.DeepCopy()
	u.replace(&st.ChatUID)
	if st.CreatedVersion != "" {
		st.CreatedVersion = live.ResourceVersion
	}
	observed(&st.ObservedGeneration, st.Conditions, old.Generation, live.Generation)
	return st
}

func (u uids) approvalStatus(old, live *v1beta1.ToolApproval) *v1beta1.ToolApprovalStatus {
	st := old.Status.DeepCopy()
	observed(&st.ObservedGeneration, st.Conditions, old.Generation, live.Generation)
	return st
}

// observed replaces generations. That of a new object is 1, however often the old one was changed.
func observed(generation *int64, conditions []metav1.Condition, old, now int64) {
	all := []*int64{generation}
	for i := range conditions {
		all = append(all, &conditions[i].ObservedGeneration)
	}
	for _, g := range all {
		if *g == old {
			*g = now
		} else {
			*g = 0 // A change that nothing has seen.
		}
	}
}
