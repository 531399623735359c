// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

func TestOnlyATraceContextIsTakenForOne(t *testing.T) {
	m := &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationTraceparent: "nonsense"}}}
	if got := traceparentOf(m); got != "" {
		t.Errorf("got %q", got)
	}
}
