// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

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
		settled, err := s.watchMessage(ctx, name)
		if settled || err != nil {
			return err
		}
		select { // the API server ends a watch now and then
		case <-time.After(reconnectAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *session) watchMessage(ctx context.Context, name string) (settled bool, err error) {
	watching, err := s.parley.Messages(s.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return false, fmt.Errorf("watching message %s: %w", name, err)
	}
	defer watching.Stop()
	for e := range watching.ResultChan() {
		m, ok := e.Object.(*v1alpha1.ChatMessage)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted {
			return true, fmt.Errorf("message %s was deleted", name)
		}
		switch ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); {
		case ready == nil || ready.Status == metav1.ConditionUnknown:
		case ready.Status == metav1.ConditionFalse:
			return true, fmt.Errorf("%s: %s", ready.Reason, ready.Message)
		default:
			return true, nil
		}
	}
	return false, nil
}
