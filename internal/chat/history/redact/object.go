// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/text/content"
)

// Object removes the text from the spec and the annotations of an object, or from the subresource. It returns the paths
// of the changed fields.
func (t *Text) Object(o *unstructured.Unstructured, subresource string) (changed []string) {
	if subresource != "" {
		fields, _, _ := unstructured.NestedMap(o.Object, subresource)
		changed = t.Fields(subresource, fields)
		o.Object[subresource] = fields
		return changed
	}
	annotations := o.GetAnnotations()
	for key, value := range annotations {
		if left := t.Replace(value); left != value {
			annotations[key] = left
			changed = append(changed, "metadata.annotations."+key)
		}
	}
	o.SetAnnotations(annotations)
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	changed = append(changed, t.Fields("spec", spec)...)
	o.Object["spec"] = spec
	return changed
}

// Archived removes the text from an object of an archive. It returns the paths of the changed fields, and whether the
// archive keeps the object.
func (t *Text) Archived(o *unstructured.Unstructured, now time.Time) (changed []string, keep bool, err error) {
	if len(t.Find("", o.Object)) == 0 {
		return nil, true, nil
	}
	if disposable, err := IsDisposable(o); err != nil || disposable {
		return nil, false, err
	}
	before := o.DeepCopy()
	changed = t.Object(o, "")
	if _, found := o.Object["status"]; found {
		changed = append(changed, t.Object(o, "status")...)
	}
	if len(changed) == 0 {
		return nil, true, nil // Only names have it.
	}
	mark, err := Mark(before, o, now)
	if err != nil {
		return nil, false, err
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.AnnotationRedacted] = mark
	o.SetAnnotations(annotations)
	return changed, true, nil
}

// IsDisposable reports whether an object with the text is deleted. A decision is recorded with the result of its call,
// a recording is for debugging, and a rejected or superseded message would be answered if it changed.
func IsDisposable(o *unstructured.Unstructured) (bool, error) {
	switch o.GetKind() {
	case "ToolApproval", "ChatDebugStep":
		return true, nil
	case kindMessage:
		m, err := messageOf(o)
		return err == nil && history.IsRefused(m), err
	}
	return false, nil
}

// Mark is the value of the annotation parley.dev/redacted. That of a message which can be edited has hashes, so that
// the redaction is no edit.
func Mark(before, after *unstructured.Unstructured, now time.Time) (string, error) {
	mark := now.UTC().Format(time.RFC3339Nano)
	if before.GetKind() != kindMessage {
		return mark, nil
	}
	was, err := messageOf(before)
	if err != nil || was.Spec.Generation != nil || was.Spec.Role == v1beta1.RoleTool {
		return mark, err
	}
	is, err := messageOf(after)
	if err != nil {
		return "", err
	}
	return content.Redacted(was, &is.Spec), nil
}

const kindMessage = "ChatMessage"

func messageOf(o *unstructured.Unstructured) (*v1beta1.ChatMessage, error) {
	var m v1beta1.ChatMessage
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &m); err != nil {
		return nil, fmt.Errorf("reading message %s: %w", o.GetName(), err)
	}
	return &m, nil
}
