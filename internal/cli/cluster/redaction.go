// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history/redact"
)

// Redaction removes a text from the objects of chats. It changes whatever the API server has of them, also fields of a
// newer version, and so works on untyped objects.
type Redaction struct {
	Namespace string
	Client    dynamic.Interface
	Text      *redact.Text
	// DryRun reports what would change, and changes nothing.
	DryRun bool
	// Report is called for each object that has the text, with the fields; with none if the object is deleted.
	Report func(object string, fields []string)
}

const (
	chats    = "chats"
	messages = "chatmessages"
)

// Chat removes the text from all objects of a chat that has no turn. After an error it can be repeated.
func (r *Redaction) Chat(ctx context.Context, name string) error {
	if err := r.annotate(ctx, name, map[string]any{v1beta1.AnnotationRedacting: "true"}); err != nil {
		return err
	}
	of := "spec.chatRef.name=" + name
	if err := r.each(ctx, messages, of, r.message); err != nil {
		return err
	}
	for resource, field := range disposable {
		if err := r.each(ctx, resource, field+name, func(ctx context.Context, o *unstructured.Unstructured) error {
			return r.remove(ctx, resource, o)
		}); err != nil {
			return err
		}
	}
	if err := r.each(ctx, chats, "metadata.name="+name, r.chat); err != nil {
		return err
	}
	return r.annotate(ctx, name, map[string]any{v1beta1.AnnotationRedacting: nil,
		v1beta1.AnnotationRedacted: time.Now().UTC().Format(time.RFC3339Nano)})
}

// each calls do for the objects that have the text.
func (r *Redaction) each(ctx context.Context, resource, fields string,
	do func(context.Context, *unstructured.Unstructured) error) error {
	options := metav1.ListOptions{FieldSelector: fields, Limit: MessagePage}
	for {
		page, err := r.of(resource).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource, err)
		}
		for i := range page.Items {
			if len(r.Text.Find("", page.Items[i].Object)) == 0 {
				continue
			}
			if err := do(ctx, &page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// message removes the text from a message, or deletes it.
func (r *Redaction) message(ctx context.Context, o *unstructured.Unstructured) error {
	switch disposable, err := redact.IsDisposable(o); {
	case err != nil:
		return err // It names the message.
	case disposable:
		return r.remove(ctx, messages, o)
	}
	return r.rewrite(ctx, messages, "", o, func(before, after *unstructured.Unstructured) (string, error) {
		return redact.Mark(before, after, time.Now())
	})
}

// chat removes the text from a chat, first where it comes from, then from the status.
func (r *Redaction) chat(ctx context.Context, o *unstructured.Unstructured) error {
	unmarked := func(_, _ *unstructured.Unstructured) (string, error) { return "", nil }
	if err := r.rewrite(ctx, chats, "", o, unmarked); err != nil {
		return err
	}
	return r.rewrite(ctx, chats, "status", o, unmarked)
}

// rewrite removes the text from the spec and the annotations of an object, or from the subresource. mark returns the
// value of the annotation that proves the redaction.
func (r *Redaction) rewrite(ctx context.Context, resource, subresource string, o *unstructured.Unstructured,
	mark func(before, after *unstructured.Unstructured) (string, error)) error {
	name, reported := o.GetName(), false
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		after := o.DeepCopy()
		changed := r.Text.Object(after, subresource)
		if len(changed) == 0 {
			return nil
		}
		if !reported {
			r.Report(resource+"/"+name, changed)
			reported = true
		}
		value, err := mark(o, after)
		if err != nil {
			return err
		}
		err = r.patch(ctx, resource, subresource, name, changesOf(o, after, value))
		if !apierrors.IsConflict(err) {
			return err
		}
		current, readErr := r.of(resource).Get(ctx, name, metav1.GetOptions{})
		if readErr != nil {
			return fmt.Errorf("reading %s/%s: %w", resource, name, readErr)
		}
		o = current
		return err
	})
}

// changesOf is a merge patch of the fields that differ; it fails if the object has changed since.
func changesOf(before, after *unstructured.Unstructured, mark string) map[string]any {
	annotations := map[string]any{}
	for key, value := range after.GetAnnotations() {
		if before.GetAnnotations()[key] != value {
			annotations[key] = value
		}
	}
	if mark != "" {
		annotations[v1beta1.AnnotationRedacted] = mark
	}
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": before.GetResourceVersion(),
		"uid": string(before.GetUID()), "annotations": annotations}}
	for _, part := range []string{"spec", "status"} {
		was, _, _ := unstructured.NestedMap(before.Object, part)
		is, _, _ := unstructured.NestedMap(after.Object, part)
		if different := differing(was, is); len(different) > 0 {
			patch[part] = different
		}
	}
	return patch
}

// differing are the values of is that was does not have. A value that is missing becomes null, which removes it.
func differing(was, is map[string]any) map[string]any {
	different := map[string]any{}
	for key, value := range was {
		now, has := is[key]
		if has && reflect.DeepEqual(now, value) {
			continue
		}
		below, isMap := value.(map[string]any)
		if nowBelow, ok := now.(map[string]any); isMap && ok {
			different[key] = differing(below, nowBelow)
			continue
		}
		different[key] = now
	}
	return different
}

func (r *Redaction) annotate(ctx context.Context, chat string, annotations map[string]any) error {
	return r.patch(ctx, chats, "", chat, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

func (r *Redaction) patch(ctx context.Context, resource, subresource, name string, patch map[string]any) error {
	if r.DryRun {
		return nil
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding the change of %s/%s: %w", resource, name, err)
	}
	subresources := strings.Fields(subresource)
	if _, err := r.of(resource).Patch(ctx, name, types.MergePatchType, raw, metav1.PatchOptions{},
		subresources...); err != nil {
		return fmt.Errorf("changing %s/%s: %w", resource, name, err)
	}
	return nil
}

func (r *Redaction) remove(ctx context.Context, resource string, o *unstructured.Unstructured) error {
	r.Report(resource+"/"+o.GetName(), nil)
	if r.DryRun {
		return nil
	}
	uid := o.GetUID()
	err := r.of(resource).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s/%s: %w", resource, o.GetName(), err)
	}
	return nil
}

// Left returns the fields of the chat's objects that still have the text, such as names, which cannot change.
func (r *Redaction) Left(ctx context.Context, chat string) (left []string, err error) {
	note := func(resource string) func(context.Context, *unstructured.Unstructured) error {
		return func(_ context.Context, o *unstructured.Unstructured) error {
			for _, field := range r.Text.Find("", o.Object) {
				left = append(left, resource+"/"+o.GetName()+" "+field)
			}
			return nil
		}
	}
	if err := r.each(ctx, messages, "spec.chatRef.name="+chat, note(messages)); err != nil {
		return nil, err
	}
	for resource, field := range disposable {
		if err := r.each(ctx, resource, field+chat, note(resource)); err != nil {
			return nil, err
		}
	}
	return left, r.each(ctx, chats, "metadata.name="+chat, note(chats))
}

// disposable are the resources whose objects are deleted if they have the text, with the selector of a chat's.
var disposable = map[string]string{"toolapprovals": "spec.chatRef.name=", "chatdebugsteps": "chatRef.name="}

func (r *Redaction) of(resource string) dynamic.ResourceInterface {
	return r.Client.Resource(v1beta1.GroupVersion.WithResource(resource)).Namespace(r.Namespace)
}
