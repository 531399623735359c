// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// busySteps is the length that the history of chat "busy" has before its model stops calling tools.
const busySteps = 80

// playPods plays the namespace's generation pods from now to the end of the test: every attempt is answered at once,
// that of chat "broken" with a failure, and the first ones of chat "busy" with calls of a tool and their results.
func playPods(t *testing.T, ns string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			if err := answerAll(ctx, ns); err != nil && ctx.Err() == nil {
				t.Errorf("playing generation pods: %v", err)
			}
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// answerAll answers each attempt that is under way in the namespace.
func answerAll(ctx context.Context, ns string) error {
	var chats v1beta1.ChatList
	if err := cluster.Client.List(ctx, &chats, client.InNamespace(ns)); err != nil {
		return fmt.Errorf("listing chats: %w", err)
	}
	for i := range chats.Items {
		chat := &chats.Items[i]
		if chat.Status.Generation == nil || !chat.DeletionTimestamp.IsZero() {
			continue
		}
		if err := cluster.Client.Create(ctx, chattest.Answer(chat, replies(chat))); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("answering chat %s: %w", chat.Name, err)
		}
	}
	return nil
}

// replies is what the chat's pod has to say to the attempt under way.
func replies(chat *v1beta1.Chat) chattest.Reply {
	switch {
	case chat.Name == "broken":
		return chattest.Fails(v1beta1.ErrorAuthenticationFailed, func(e *v1beta1.GenerationError) {
			e.Message, e.Advice = "The key is refused", "Put a valid key into the Secret, then send a message to continue"
			e.StatusCode = 401
		})
	case chat.Status.Generation.Action == v1beta1.ActionExecuteTools:
		return chattest.Results("call")
	case chat.Name == "busy" && chat.Status.History.Length < busySteps:
		return chattest.Calls("call")
	}
	return chattest.Says("Fine.")
}
