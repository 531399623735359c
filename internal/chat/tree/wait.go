// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// Settled reports whether who waits for the chat need wait no longer: nothing is under way in it, be it done, failed,
// over budget or kept from beginning. A chat that is to be archived counts, too:
// it takes nothing up, and may wait for the one that waits for it.
func Settled(chat *v1beta1.Chat) bool {
	ready := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionReady)
	if chat.Status.Phase.HasTurn() {
		return ready != nil && ready.Status == metav1.ConditionFalse // Only a budget holds it then.
	}
	return ready != nil && v1beta1.ReasonOf(ready) != v1beta1.ReasonStarting &&
		v1beta1.ReasonOf(ready) != v1beta1.ReasonRestoring
}

// Descendant finds the chat of that name if it is below another one; nil if there is none. get reads a chat of the
// namespace; its errors are the API server's own.
func Descendant(name, of string, get func(name string) (*v1beta1.Chat, error)) (*v1beta1.Chat, error) {
	lookup := func(name string) (*v1beta1.Chat, error) {
		chat, err := get(name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return chat, err
	}
	chat, err := lookup(name)
	if err != nil || chat == nil {
		return nil, err
	}
	if below, err := Below(chat, of, lookup); err != nil || !below {
		return nil, err
	}
	return chat, nil
}

// Below reports whether the chat is below the one of that name, at any depth. lookup finds a chat of the namespace; nil
// if there is none.
func Below(chat *v1beta1.Chat, name string, lookup func(name string) (*v1beta1.Chat, error)) (bool, error) {
	self := chat.Name
	for range v1beta1.MaxFamilyDepth {
		parent := chat.Spec.ParentRef
		if parent == nil || self == name {
			return false, nil
		}
		if parent.Name == name {
			return true, nil
		}
		next, err := lookup(parent.Name)
		if err != nil || next == nil {
			return false, err
		}
		chat = next
	}
	return false, nil
}
