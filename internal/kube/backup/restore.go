// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
)

// Options of a restore.
type Options struct {
	// Namespace to restore into; empty: the one of each object in the backup.
	Namespace string
	// Names of the chats to restore, each with its family; empty: all chats, and the settings.
	Names []string
	// DryRun checks the backup, and what the API server says to its chats and settings, and writes nothing.
	DryRun bool
	// Now returns the current time.
	Now func() time.Time
}

// Outcome is what a restore did with an object.
type Outcome string

const (
	// Restored means that the restore created the object, or would create it.
	Restored Outcome = "restored"
	// Unchanged means that the object was there already: it was never deleted, or restored before.
	Unchanged Outcome = "unchanged"
	// Failed means that the object was not restored, or not completely.
	Failed Outcome = "failed"
)

// Result is what a restore did with a chat or a setting.
type Result struct {
	Kind, Namespace, Name string
	Outcome               Outcome
	// Messages is the number of messages of a chat.
	Messages int
	// Err is why the object failed.
	Err error
}

// Report is what a restore did.
type Report struct{ Results []Result }

// Failed is the number of objects that were not restored.
func (r *Report) Failed() (n int) {
	for i := range r.Results {
		if r.Results[i].Outcome == Failed {
			n++
		}
	}
	return n
}

// Restore restores the chats of a backup. A chat that fails does not keep the others from being restored. To continue
// an interrupted restore, repeat it. The error is about the options, or the end of ctx; the report, which is nil for
// options that cannot be used, has those of the objects.
func Restore(ctx context.Context, client *apiclient.Client, b *Backup, o Options) (*Report, error) {
	families, err := b.families(o.Names)
	if err != nil {
		return nil, err
	}
	if spaces := b.namespaces(); o.Namespace != "" && len(spaces) > 1 {
		return nil, fmt.Errorf("the backup has chats of the namespaces %s, which cannot all be restored into %s",
			strings.Join(spaces, ", "), o.Namespace)
	}
	report := &Report{}
	if len(o.Names) == 0 {
		report.Results = (&restorer{client: client, options: o}).restoreSettings(ctx, b.Settings)
	}
	results := make([][]Result, len(families))
	var group errgroup.Group
	group.SetLimit(familiesAtOnce)
	for i, family := range families {
		group.Go(func() error {
			if ctx.Err() == nil {
				results[i] = (&restorer{client: client, options: o, uids: uids{}}).restoreFamily(ctx, family)
			}
			return nil
		})
	}
	_ = group.Wait() // The results have the errors.
	report.Results = append(report.Results, slices.Concat(results...)...)
	return report, ctx.Err()
}

func (b *Backup) namespaces() []string {
	spaces := map[string]bool{}
	for i := range b.Chats {
		spaces[b.Chats[i].Namespace] = true
	}
	return slices.Sorted(maps.Keys(spaces))
}

// familiesAtOnce is how many families are restored at the same time.
const familiesAtOnce = 8

// restorer restores one family, or the settings.
type restorer struct {
	client  *apiclient.Client
	options Options
	uids    uids
}

func (r *restorer) namespace(of string) string {
	if r.options.Namespace != "" {
		return r.options.Namespace
	}
	return of
}

// restoreSettings creates what does not exist yet. Every cluster has a kube-root-ca.crt of its own.
func (r *restorer) restoreSettings(ctx context.Context, all []Setting) (results []Result) {
	for _, kind := range settings {
		for i := range all {
			if s := &all[i]; s.Kind == kind.kind && s.Metadata.Name != "kube-root-ca.crt" {
				result := Result{Kind: s.Kind, Namespace: r.namespace(s.Metadata.Namespace), Name: s.Metadata.Name}
				result.Outcome, result.Err = r.restoreSetting(ctx, s)
				results = append(results, result)
			}
		}
	}
	return results
}

func (r *restorer) restoreSetting(ctx context.Context, s *Setting) (Outcome, error) {
	var object map[string]any
	if err := json.Unmarshal(s.Content, &object); err != nil {
		return Failed, fmt.Errorf("decoding it: %w", err)
	}
	namespace := r.namespace(s.Metadata.Namespace)
	object["metadata"] = metav1.ObjectMeta{Namespace: namespace, Name: s.Metadata.Name, Labels: s.Metadata.Labels,
		Annotations: s.Metadata.Annotations}
	delete(object, "status")
	content, err := json.Marshal(object)
	if err != nil {
		return Failed, fmt.Errorf("encoding it: %w", err)
	}
	var options metav1.CreateOptions
	if r.options.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	switch err := r.client.CreateAny(ctx, s.resource, namespace, content, options); {
	case apierrors.IsAlreadyExists(err):
		return Unchanged, nil
	case err != nil:
		return Failed, fmt.Errorf("creating it: %w", err)
	}
	return Restored, nil
}

// leftOutError is why a chat cannot be restored, which trying again does not change.
type leftOutError string

func (e leftOutError) Error() string { return string(e) }

// restoreFamily restores the chats of a family in steps. The operator holds them all until the last step, because a
// chat may wait for its sub-chats. If a step fails, it holds them until the restore is repeated.
func (r *restorer) restoreFamily(ctx context.Context, family []*member) (results []Result) {
	steps := []func(context.Context, *member) error{r.restoreChat}
	if !r.options.DryRun {
		steps = append(steps, r.restoreMessages, r.restoreApprovals, r.restoreStatus)
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
		results = append(results, r.resultOf(m))
		m.liveMessages = nil
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
			m.err = r.release(ctx, m)
		}
	}
}

func (r *restorer) resultOf(m *member) Result {
	result := Result{Kind: "Chat", Namespace: r.namespace(m.chat.Namespace), Name: m.chat.Name, Outcome: Restored,
		Messages: len(m.messages), Err: m.err}
	switch {
	case m.err != nil:
		result.Outcome = Failed
	case m.isUnchanged():
		result.Outcome = Unchanged
	}
	return result
}

// isUnchanged reports whether the chat exists, and is not being restored.
func (m *member) isUnchanged() bool { return m.live != nil && !m.live.IsRestoring() }

// restoreChat creates the Chat, unless an earlier restore did.
func (r *restorer) restoreChat(ctx context.Context, m *member) (err error) {
	chats := r.client.Chats(r.namespace(m.chat.Namespace))
	m.live, err = chats.Get(ctx, m.chat.Name)
	switch {
	case err == nil:
		if isOf(m.live, m.chat) || m.live.UID == m.chat.UID && m.live.Namespace == m.chat.Namespace {
			r.uids[string(m.chat.UID)] = string(m.live.UID)
			return nil
		}
		return leftOutError("another chat has its name: delete that chat, or restore into another namespace")
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading the chat: %w", err)
	}
	m.live = nil
	if m.parent != nil && m.parent.isUnchanged() { // The budget above counts the deleted chat already.
		return leftOutError("chat " + m.parent.chat.Name + ", which is above it, exists: delete that to restore the family")
	}
	return r.createChat(ctx, m)
}

func (r *restorer) createChat(ctx context.Context, m *member) error {
	chats := r.client.Chats(r.namespace(m.chat.Namespace))
	create := chats.Create
	if r.options.DryRun {
		create = chats.DryRunCreate
	}
	live, err := create(ctx, r.uids.newChat(m.chat, r.namespace(m.chat.Namespace)))
	if err != nil {
		return fmt.Errorf("creating the chat: %w", err)
	}
	m.live, r.uids[string(m.chat.UID)] = live, string(live.UID)
	return nil
}

// isOf reports whether an object was restored from the one of the backup.
func isOf(live, old metav1.Object) bool {
	return live.GetAnnotations()[v1beta1.AnnotationRestoredFrom] == string(old.GetUID())
}

// restore returns the object in the cluster: the new one, or that of an earlier restore from the same backup.
func restore[T, L any](ctx context.Context, to apiclient.Resource[T, L], object *T, old metav1.Object) (*T, error) {
	live, err := to.Create(ctx, object)
	if err == nil {
		return live, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating %s: %w", old.GetName(), err)
	}
	if live, err = to.Get(ctx, old.GetName()); err != nil {
		return nil, fmt.Errorf("reading %s: %w", old.GetName(), err)
	}
	if there, _ := any(live).(metav1.Object); there == nil || !isOf(there, old) {
		return nil, fmt.Errorf("another object has the name %s: delete it, and restore again", old.GetName())
	}
	return live, nil
}

func (r *restorer) restoreMessages(ctx context.Context, m *member) error {
	namespace := r.namespace(m.chat.Namespace)
	messages := r.client.Messages(namespace)
	for _, old := range m.messages {
		live, err := restore(ctx, messages, r.uids.newMessage(old, namespace), old)
		if err != nil {
			return fmt.Errorf("restoring the messages: %w", err)
		}
		r.uids[string(old.UID)] = string(live.UID)
		if old.Spec.Generation == nil {
			m.liveMessages[old.Name] = live
		}
	}
	return nil
}

func (r *restorer) restoreApprovals(ctx context.Context, m *member) error {
	namespace := r.namespace(m.chat.Namespace)
	approvals := r.client.Approvals(namespace)
	for _, old := range m.approvals {
		live, err := restore(ctx, approvals, r.uids.newApproval(old, namespace), old)
		if err != nil {
			return fmt.Errorf("restoring the approvals: %w", err)
		}
		if !m.hasApplied(old) || len(live.Status.Conditions) > 0 {
			continue
		}
		if err := setStatus(ctx, approvals, live, r.uids.approvalStatus(old, live)); err != nil {
			return err
		}
	}
	return nil
}

// restoreStatus writes the status of the chat after those of its messages.
func (r *restorer) restoreStatus(ctx context.Context, m *member) error {
	messages := r.client.Messages(m.live.Namespace)
	for _, old := range m.messages {
		live := m.liveMessages[old.Name]
		if live == nil || !m.hasStatus(old) || live.Status.State != "" {
			continue
		}
		if err := setStatus(ctx, messages, live, r.uids.messageStatus(old, live)); err != nil {
			return err
		}
	}
	return setStatus(ctx, r.client.Chats(m.live.Namespace), m.live,
		r.uids.chatStatus(m.chat, m.live, r.options.Now()))
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func isUID(uid types.UID) operation { return operation{"test", "/metadata/uid", uid} }

func setStatus[T, L any](ctx context.Context, of apiclient.Resource[T, L], live metav1.Object, status any) error {
	if _, err := of.JSONPatch(ctx, live.GetName(), []operation{isUID(live.GetUID()), {"add", "/status", status}},
		"status"); err != nil {
		return fmt.Errorf("writing the status of %s: %w", live.GetName(), err)
	}
	return nil
}

func (r *restorer) release(ctx context.Context, m *member) error {
	annotation := "/metadata/annotations/" + strings.ReplaceAll(v1beta1.AnnotationRestoring, "/", "~1")
	if _, err := r.client.Chats(m.live.Namespace).JSONPatch(ctx, m.live.Name,
		[]operation{isUID(m.live.UID), {Op: "remove", Path: annotation}}); err != nil {
		return fmt.Errorf("releasing the chat: %w", err)
	}
	return nil
}
