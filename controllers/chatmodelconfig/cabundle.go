// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmodelconfig

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/modelconfig"
)

// The manager may get ConfigMaps, and not watch them: it looks at them from time to time. Generation pods read them for
// each call, so that only the condition is late.
const (
	// missingBundle is after what time a bundle is looked at again that cannot be used: 15 s.
	missingBundle = 15 * time.Second
	// usableBundle is the same for one that can be used: 10 minutes.
	usableBundle = 10 * time.Minute
)

// caBundle is what is wrong with the ConfigMap that caBundleFrom names, and when to look again; nothing for a Secret,
// which the manager may not read.
func (r *Reconciler) caBundle(ctx context.Context, config *v1beta1.ChatModelConfig) (
	problem *modelconfig.CABundleProblem, again time.Duration, err error,
) {
	from := config.Spec.CABundleFrom
	if from == nil || from.ConfigMapKeyRef == nil {
		return nil, 0, nil
	}
	var holder corev1.ConfigMap
	ref := from.ConfigMapKeyRef
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: ref.Name}, &holder)
	switch {
	case apierrors.IsForbidden(err):
		return nil, usableBundle, nil // Generation pods see for themselves.
	case client.IgnoreNotFound(err) != nil:
		return nil, 0, fmt.Errorf("reading ConfigMap %s: %w", ref.Name, err)
	}
	bundle, found := holder.BinaryData[ref.Key]
	if text, ok := holder.Data[ref.Key]; ok {
		bundle, found = []byte(text), true
	}
	if problem = modelconfig.CheckCABundle(ref, bundle, found); problem != nil {
		return problem, missingBundle, nil
	}
	return nil, usableBundle, nil
}
