// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/content"
)

// Options of a restore.
type Options struct {
	// Namespace to restore into; empty: the one of each object in the backup.
	Namespace string
	// Names of the chats to restore, each with its family; empty: all chats, and the settings.
	Names []string
	// DryRun checks the backup, has the API server check its chats, and writes nothing.
	DryRun bool
	// File restores a file of the object storage that a message of the chat names; nil: it is missing afterwards.
	File func(ctx context.Context, chat *v1beta1.Chat, digest string) error
	// Now returns the current time.
	Now func() time.Time
}

// Result is what a restore did with a chat or a setting.
type Result struct {
	Kind, Namespace, Name string
	// Unchanged is true for a chat that was there already: it was never deleted, or restored before.
	Unchanged bool
	// Messages is the number of messages of a chat.
	Messages int
	// Err is why the object was not restored, or not completely.
	Err error
}

// Report is what a restore did.
type Report struct{ Results []Result }

// Restore restores the chats of a backup. A chat that fails does not keep the others from being restored. To continue
// an interrupted restore, repeat it. The error is about the options, or the end of ctx; the report, which is nil for
// options that cannot be used, has those of the objects.
func Restore(ctx context.Context, client *apiclient.Client, b *Backup, o Options) (*Report, error) {
	families, err := b.families(o.Names)
	if err != nil {
		return nil, err
	}
	report, r := &Report{}, &restorer{client: client, options: o, uids: uids{}}
	if len(o.Names) == 0 && !o.DryRun {
		report.Results = r.restoreSettings(ctx, b.Settings)
	}
	for _, family := range families {
		if ctx.Err() == nil {
			report.Results = append(report.Results, r.restoreFamily(ctx, family)...)
		}
	}
	return report, ctx.Err()
}

type restorer struct {
	client  *apiclient.Client
	options Options
	uids    uids
}

// restoreSettings creates what does not exist yet.
func (r *restorer) restoreSettings(ctx context.Context, all []Setting) (results []Result) {
	for _, kind := range settingKinds {
		for i := range all {
			if s := &all[i]; s.Kind == kind {
				namespace := cmp.Or(r.options.Namespace, s.Metadata.Namespace)
				if err := r.restoreSetting(ctx, s, namespace); !apierrors.IsAlreadyExists(err) {
					results = append(results, Result{Kind: s.Kind, Namespace: namespace, Name: s.Metadata.Name, Err: err})
				}
			}
		}
	}
	return results
}

func (r *restorer) restoreSetting(ctx context.Context, s *Setting, namespace string) error {
	var object map[string]any
	if err := json.Unmarshal(s.Content, &object); err != nil {
		return fmt.Errorf("decoding it: %w", err)
	}
	object["metadata"] = metav1.ObjectMeta{Namespace: namespace, Name: s.Metadata.Name, Labels: s.Metadata.Labels,
		Annotations: s.Metadata.Annotations}
	delete(object, "status")
	content, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding it: %w", err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(s.GroupVersionKind())
	return r.client.CreateAny(ctx, resource, namespace, content)
}

// leftOutError is why a chat cannot be restored, which trying again does not change.
type leftOutError string

func (e leftOutError) Error() string { return string(e) }

// restoreFamily restores the chats of a family in steps. The operator holds them all until the last step, because a
// chat may wait for its sub-chats. If a step fails, it holds them until the restore is repeated.
func (r *restorer) restoreFamily(ctx context.Context, family []*member) (results []Result) {
	steps := []func(context.Context, *member) error{r.restoreChat}
	if !r.options.DryRun {
		steps = append(steps, r.restoreMessages, r.restoreFiles, r.restoreApprovals, r.restoreStatus)
	}
	for _, step := range steps {
		for _, m := range family {
			m.do(ctx, step)
		}
	}
	if !r.options.DryRun {
		r.releaseFamily(ctx, family)
	}
	for _, m := range family {
		results = append(results, Result{Kind: "Chat", Namespace: cmp.Or(r.options.Namespace, m.chat.Namespace),
			Name: m.chat.Name, Unchanged: m.isUnchanged(), Messages: len(m.messages), Err: m.err})
	}
	return results
}

// do does a step of the restore of a chat, unless an earlier one of it, or of the chat above, has failed.
func (m *member) do(ctx context.Context, step func(context.Context, *member) error) {
	switch {
	case m.err != nil:
	case m.parent != nil && m.parent.err != nil:
		m.err = leftOutError("chat " + m.parent.chat.Name + ", which is above it, is not restored")
	case !m.isUnchanged():
		m.err = step(ctx, m)
	}
}

// releaseFamily ends the restore of a family: the operator takes the chats over, sub-chats first.
func (r *restorer) releaseFamily(ctx context.Context, family []*member) {
	var leftOut leftOutError
	failed := slices.IndexFunc(family, func(m *member) bool { return m.err != nil && !errors.As(m.err, &leftOut) })
	for _, m := range slices.Backward(family) {
		switch {
		case m.err != nil || m.isUnchanged():
		case failed >= 0:
			m.err = fmt.Errorf("it is held until the restore is repeated, because chat %s failed", family[failed].chat.Name)
		default:
			m.err = patch(ctx, r.client.Chats(m.live.Namespace), m.live,
				operation{Op: "remove", Path: "/metadata/annotations/parley.dev~1restoring"})
		}
	}
}

// isUnchanged reports whether the chat exists, and is not being restored.
func (m *member) isUnchanged() bool { return m.live != nil && !m.live.IsRestoring() }

// restoreChat creates the Chat, unless an earlier restore did.
func (r *restorer) restoreChat(ctx context.Context, m *member) error {
	chats := r.client.Chats(cmp.Or(r.options.Namespace, m.chat.Namespace))
	create := chats.Create
	if r.options.DryRun {
		create = chats.DryRunCreate
	}
	live, err := chats.Get(ctx, m.chat.Name)
	switch {
	case apierrors.IsNotFound(err) && m.parent != nil && m.parent.isUnchanged(): // Its budget counts the deleted chat.
		return leftOutError("chat " + m.parent.chat.Name + ", which is above it, exists: delete that to restore the family")
	case apierrors.IsNotFound(err):
		live, err = create(ctx, r.uids.newChat(m, cmp.Or(r.options.Namespace, m.chat.Namespace)))
	case err == nil && m.conflict(live) != nil:
		return m.conflict(live)
	}
	if err != nil {
		return fmt.Errorf("creating the chat: %w", err)
	}
	m.live, r.uids[string(m.chat.UID)] = live, string(live.UID)
	return nil
}

// conflict is why the chat that exists cannot be the restored one; nil if it can.
func (m *member) conflict(live *v1beta1.Chat) error {
	switch {
	case !isOf(live, m.chat):
		return leftOutError("another chat has its name: delete that chat, or restore into another namespace")
	case live.IsRestoring() && live.Annotations[v1beta1.AnnotationRestoring] != m.backup:
		return errors.New("its restore began with another backup: continue with that backup, or delete the chat and " +
			"restore again")
	}
	return nil
}

// isOf reports whether an object is the one of the backup, or was restored from it.
func isOf(live, old metav1.Object) bool {
	return live.GetUID() == old.GetUID() || live.GetAnnotations()[v1beta1.AnnotationRestoredFrom] == string(old.GetUID())
}

// restore creates an object, unless an earlier restore from the same backup did, and writes its status if it has one.
func restore[T, L any, P interface {
	*T
	metav1.Object
}](ctx context.Context, to apiclient.Resource[T, L], object, old P, status func(live P) any) (live P, err error) {
	live, err = to.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		if live, err = to.Get(ctx, old.GetName()); err == nil && !isOf(live, old) {
			err = errors.New("another object has its name: delete that, and restore again")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", old.GetName(), err)
	}
	if now := status(live); now != nil {
		return live, setStatus(ctx, to, live, now)
	}
	return live, nil
}

func (r *restorer) restoreMessages(ctx context.Context, m *member) error {
	for i := range m.messages {
		old := &m.messages[i]
		live, err := restore(ctx, r.client.Messages(m.live.Namespace), r.uids.newMessage(old, m.live.Namespace), old,
			func(live *v1beta1.ChatMessage) any {
				if m.hasStatus(old) && live.Status.State == "" {
					return r.uids.messageStatus(old, live)
				}
				return nil
			})
		if err != nil {
			return err
		}
		r.uids[string(old.UID)] = string(live.UID)
	}
	return nil
}

func (r *restorer) restoreFiles(ctx context.Context, m *member) error {
	for i := range m.messages {
		for _, digest := range content.StoredFiles(&m.messages[i]) {
			if r.options.File == nil {
				return nil
			}
			if err := r.options.File(ctx, m.live, digest); err != nil {
				return fmt.Errorf("restoring file %s: %w", digest, err)
			}
		}
	}
	return nil
}

func (r *restorer) restoreApprovals(ctx context.Context, m *member) error {
	for i := range m.approvals {
		old := &m.approvals[i]
		object := &v1beta1.ToolApproval{ObjectMeta: r.uids.metadata(&old.ObjectMeta, m.live.Namespace), Spec: old.Spec}
		if _, err := restore(ctx, r.client.Approvals(m.live.Namespace), object, old,
			func(live *v1beta1.ToolApproval) any {
				if len(old.Status.Conditions) == 0 || len(live.Status.Conditions) > 0 {
					return nil
				}
				return r.uids.approvalStatus(old, live)
			}); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) restoreStatus(ctx context.Context, m *member) error {
	return setStatus(ctx, r.client.Chats(m.live.Namespace), m.live, r.uids.chatStatus(m.chat, m.live, r.options.Now()))
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func setStatus[T, L any](ctx context.Context, of apiclient.Resource[T, L], live metav1.Object, status any) error {
	return patch(ctx, of, live, operation{"add", "/status", status}, "status")
}

// patch changes an object, or a subresource of it, if it is still the same object.
func patch[T, L any](ctx context.Context, of apiclient.Resource[T, L], live metav1.Object, change operation,
	subresource ...string) error {
	isSame := operation{"test", "/metadata/uid", live.GetUID()}
	if _, err := of.JSONPatch(ctx, live.GetName(), []operation{isSame, change}, subresource...); err != nil {
		return fmt.Errorf("changing %s: %w", live.GetName(), err)
	}
	return nil
}
