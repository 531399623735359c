// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1beta1"
)

// Recordings is an observe.Store in memory.
type Recordings map[string]*v1beta1.ChatDebugStep

// Get implements observe.Store.
func (r Recordings) Get(_ context.Context, name string) (*v1beta1.ChatDebugStep, error) {
	if step := r[name]; step != nil {
		return step, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// Create implements observe.Store.
func (r Recordings) Create(_ context.Context, step *v1beta1.ChatDebugStep) (*v1beta1.ChatDebugStep, error) {
	r[step.Name] = step
	return step, nil
}

// Update implements observe.Store.
func (r Recordings) Update(ctx context.Context, step *v1beta1.ChatDebugStep) (*v1beta1.ChatDebugStep, error) {
	return r.Create(ctx, step)
}
