// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/kube/ensure"
)

const (
	// sharePrefix begins the names of the Role and the RoleBinding of a shared chat. A policy limits the manager to them.
	sharePrefix = "parley-share-"
	// maxSharedChats bounds the chats in one Role.
	maxSharedChats = 1000
	// shareRetry is when to try again what the API server has refused.
	shareRetry = time.Minute
)

// grants remembers by chat what its readers were granted last, so that a pass writes only what differs.
type grants struct{ sync.Map }

// sharer gives the readers in spec.sharing a Role for the chat and its sub-chats. Condition Shared is written before
// the Role, and removed after it: so a new manager knows which chats may have one.
type sharer struct {
	// client reads from the cache and writes.
	client  client.Client
	granted *grants
	now     func() time.Time
}

// access is what a pass made of spec.sharing.
type access struct {
	shared conditions.Summary
	// again is when to look again; zero: when something changes.
	again time.Duration
}

// record adds the access to what the pass writes.
func (a access) record(todo *plan.Plan, now time.Time) {
	conditions.MarkShared(&todo.Status, a.shared, now)
	todo.Again = plan.Sooner(todo.Again, a.again)
}

// share grants or removes access. A failure never holds the chat.
func (s *sharer) share(ctx context.Context, chat *v1beta1.Chat) access {
	readers, ends := s.readersOf(chat)
	before := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionShared)
	_, known := s.granted.Load(keyOf(chat))
	mayExist := known || before != nil && before.Reason != string(v1beta1.ReasonSharingEnded)
	var err error
	var a access
	switch {
	case len(readers) > 0 && !mayExist:
		return access{conditions.Working(v1beta1.ReasonSharing, "Granting access"), time.Nanosecond}
	case len(readers) > 0:
		a.again = ends
		a.shared, err = s.grant(ctx, chat, readers)
	case mayExist:
		err = s.revoke(ctx, keyOf(chat))
	}
	switch {
	case err != nil:
		return access{s.fail(ctx, chat, err), plan.Sooner(a.again, shareRetry)}
	case len(readers) == 0 && len(chat.Spec.Sharing) > 0:
		a.shared = conditions.Failed(v1beta1.ReasonSharingEnded, "The time of every reader has passed: change until in "+
			"spec.sharing, or remove the entries")
	}
	return a
}

// fail reports why access cannot be changed. If the API server refuses the change, it removes the access of all:
// otherwise a reader who was removed, or whose time has passed, keeps it for as long as another entry is refused.
func (s *sharer) fail(ctx context.Context, chat *v1beta1.Chat, err error) conditions.Summary {
	log.FromContext(ctx).Error(err, "The access of readers cannot be changed")
	words, effect := denial.Of(err, sharePrefix+chat.Name), "former readers may still have access"
	if words != "" && s.revoke(ctx, keyOf(chat)) == nil {
		effect = "no reader in spec.sharing has access"
	}
	return conditions.Failed(v1beta1.ReasonSharingFailed, fmt.Sprintf("Access cannot be changed by Role and RoleBinding "+
		"%s: %s. Until it can, %s", sharePrefix+chat.Name, cmp.Or(words, err.Error()), effect))
}

// mayHaveReaders reports whether time alone may end the access of somebody.
func mayHaveReaders(chat *v1beta1.Chat) bool {
	return len(chat.Spec.Sharing) > 0 ||
		meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionShared) != nil
}

// readersOf are those who have access now, and how long until the first of them loses it; zero: none does.
func (s *sharer) readersOf(chat *v1beta1.Chat) (readers []v1beta1.ChatShare, ends time.Duration) {
	now := s.now()
	for _, reader := range chat.Spec.Sharing {
		if reader.Until != nil {
			left := reader.Until.Sub(now)
			if left <= 0 {
				continue
			}
			ends = plan.Sooner(ends, left)
		}
		readers = append(readers, reader)
	}
	return readers, ends
}

// describe names the readers, and the sub-chats that are too many for one Role.
func describe(readers []v1beta1.ChatShare, left int) string {
	words := make([]string, 0, len(readers))
	for _, r := range readers {
		words = append(words, r.Describe())
	}
	text := "Readable by " + strings.Join(words, ", ")
	if left > 0 {
		text += fmt.Sprintf(". %d sub-chats are not: a Role names at most %d chats", left, maxSharedChats)
	}
	return text
}

// grant gives the readers access, and says who has it.
func (s *sharer) grant(ctx context.Context, chat *v1beta1.Chat, readers []v1beta1.ChatShare) (shared conditions.Summary,
	err error) {
	names, err := s.familyOf(ctx, chat)
	if err != nil {
		return shared, err
	}
	within := names[:min(len(names), maxSharedChats)]
	shared = conditions.Done(v1beta1.ReasonShared, describe(readers, len(names)-len(within)))
	role, binding := shareRole(chat, within), shareBinding(chat, readers)
	grant := fmt.Sprint(chat.UID, role.Rules, binding.Subjects)
	if last, _ := s.granted.Load(keyOf(chat)); last == grant {
		return shared, nil
	}
	s.granted.Store(keyOf(chat), "") // One of the two may be written.
	for _, o := range []client.Object{role, binding} {
		if err := ensure.Apply(ctx, s.client, o); err != nil {
			return shared, fmt.Errorf("sharing chat %s/%s: %w", chat.Namespace, chat.Name, err)
		}
	}
	s.granted.Store(keyOf(chat), grant)
	return shared, nil
}

// familyOf names the chat and those below it.
func (s *sharer) familyOf(ctx context.Context, chat *v1beta1.Chat) ([]string, error) {
	var chats v1beta1.ChatList
	err := s.client.List(ctx, &chats, client.InNamespace(chat.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the sub-chats of chat %s/%s: %w", chat.Namespace, chat.Name, err)
	}
	names := []string{}
	for _, below := range tree.Of(chats.Items).Descendants(chat) {
		names = append(names, below.Name)
	}
	slices.Sort(names)
	return append([]string{chat.Name}, names...), nil
}

// shareRole allows what the gateway asks for before it streams a chat, and to read its settings.
func shareRole(chat *v1beta1.Chat, names []string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: shareMeta(chat), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"chats", "chats/stream"},
		ResourceNames: names, Verbs: []string{"get"},
	}}}
}

func shareBinding(chat *v1beta1.Chat, readers []v1beta1.ChatShare) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{ObjectMeta: shareMeta(chat),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: sharePrefix + chat.Name}}
	for _, r := range readers {
		subject := rbacv1.Subject{Kind: string(r.Kind), Name: r.Name}
		if r.Kind == v1beta1.ShareServiceAccount {
			subject.Namespace = cmp.Or(r.Namespace, chat.Namespace)
		} else {
			subject.APIGroup = rbacv1.GroupName
		}
		binding.Subjects = append(binding.Subjects, subject)
	}
	return binding
}

func shareMeta(chat *v1beta1.Chat) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: sharePrefix + chat.Name, Namespace: chat.Namespace,
		Labels: map[string]string{"app.kubernetes.io/name": "parley", "app.kubernetes.io/component": "sharing"},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(chat, v1beta1.GroupVersion.WithKind("Chat"))},
	}
}

// revoke removes the access of all readers.
func (s *sharer) revoke(ctx context.Context, key types.NamespacedName) error {
	named := metav1.ObjectMeta{Namespace: key.Namespace, Name: sharePrefix + key.Name}
	for _, o := range []client.Object{&rbacv1.RoleBinding{ObjectMeta: named}, &rbacv1.Role{ObjectMeta: named}} {
		if err := client.IgnoreNotFound(s.client.Delete(ctx, o)); err != nil {
			return fmt.Errorf("removing the readers of chat %s: %w", key, err)
		}
	}
	s.granted.Delete(key)
	return nil
}

// forget removes the access to a chat that is gone. The garbage collector takes longer, and a deletion with
// --cascade=orphan leaves the Role to the next chat of the name.
func (s *sharer) forget(ctx context.Context, key types.NamespacedName) error {
	if _, known := s.granted.Load(key); !known {
		return nil
	}
	return s.revoke(ctx, key)
}
