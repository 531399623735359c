// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// checkChat says which chats there are, if this one is not.
func (s *session) checkChat(ctx context.Context, name string) error {
	_, err := s.parley.Chats(s.namespace).Get(ctx, name)
	if !apierrors.IsNotFound(err) {
		return err
	}
	there := "there is none"
	if list, err := s.parley.Chats(s.namespace).List(ctx, metav1.ListOptions{Limit: 10}); err == nil && len(list.Items) > 0 {
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		there = "there is " + strings.Join(names, ", ")
	}
	return fmt.Errorf("namespace %s has no chat %s: %s", s.namespace, name, there)
}

// settled waits until a message has had its last word. It returns an error if that is not an answer.
func (s *session) settled(ctx context.Context, name string) error {
	for {
		watch, err := s.parley.Messages(s.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			return fmt.Errorf("watching message %s: %w", name, err)
		}
		for e := range watch.ResultChan() {
			m, ok := e.Object.(*v1alpha1.ChatMessage)
			if !ok {
				break
			}
			ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status == metav1.ConditionUnknown {
				continue
			}
			watch.Stop()
			if ready.Status == metav1.ConditionFalse {
				return fmt.Errorf("%s: %s", ready.Reason, ready.Message)
			}
			return nil
		}
		watch.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// sendUnheard sends a message and shows the reply once it is committed.
func (s *session) sendUnheard(ctx context.Context, chat, text string) error {
	m, err := s.create(ctx, chat, text)
	if err != nil {
		return err
	}
	if err := s.settled(ctx, m.Name); err != nil {
		return err
	}
	c, err := s.parley.Chats(s.namespace).Get(ctx, chat)
	if err != nil {
		return fmt.Errorf("reading chat %s: %w", chat, err)
	}
	reply, err := s.parley.Messages(s.namespace).Get(ctx, c.Status.History.Head)
	if err != nil {
		return fmt.Errorf("reading the reply: %w", err)
	}
	for i := range reply.Spec.Parts {
		if part := &reply.Spec.Parts[i]; part.Type == v1alpha1.PartText {
			fmt.Fprint(s.options.Out, *part.Text)
		}
	}
	fmt.Fprintln(s.options.Out)
	return nil
}
