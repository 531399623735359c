// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspaces

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/internal/netguard/retry"
)

// patience is how long the API server is asked again for what it does not give: 20 s. It is back before that when it is
// restarted, and a request to a workspace, which needs a token, lasts 30 s.
const patience = 20 * time.Second

// read reads an object. That there is none is an answer.
func read[T any](ctx context.Context, get func(context.Context, string) (T, error), name string) (T, error) {
	return patiently(ctx, func(ctx context.Context) (T, error) { return get(ctx, name) }, apierrors.IsNotFound)
}

// token is one for the audience. That this very pod is not found, in whose name it is asked for, is none of the model's
// business: the pod has been removed, and its chats are being given to others, which ends ctx.
func (w *Workspaces) token(ctx context.Context, audience string) (string, error) {
	return patiently(ctx, func(ctx context.Context) (string, error) { return w.tokens.Of(ctx, audience) })
}

// patiently asks again until there is an answer, or an error that is one, or time is up. It cuts no question short. The
// error is that of the last question, which says what is wrong, and no timeout.
func patiently[T any](
	ctx context.Context, ask func(context.Context) (T, error), isAnswer ...func(error) bool,
) (T, error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	answer, err := retry.Do(patient, retry.APIServer, func(context.Context) (answer T, err error) {
		answer, last = ask(ctx)
		return answer, last
	}, isAnswer...)
	if err != nil && last != nil && ctx.Err() == nil {
		return answer, last
	}
	return answer, err
}
