// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/model/reference"
)

// modelVerbs are what people do with the default model of the namespace. One manager tells when it knows of a change.
// Which of several chats a quota lets begin first when a model arrives is not said, so there is no quota then.
var modelVerbs = map[string]verb{
	"model": {
		able:  func(c *reference.Chat, _ operation) bool { return c.Name == "" && !c.HasModel() },
		model: func(c *reference.Chat, _ operation) { c.GiveModel() },
		real:  func(ctx context.Context, d *driver, _ operation) error { return d.giveModel(ctx) },
	},
	"unmodel": {
		able: func(c *reference.Chat, _ operation) bool {
			return *managersFlag == 1 && c.Name == "" && c.HasModel() && len(c.Quotas()) == 0 && c.MayLoseModel()
		},
		model: func(c *reference.Chat, _ operation) { c.TakeModel() },
		real:  func(ctx context.Context, d *driver, _ operation) error { return d.takeModel(ctx) },
	},
}

// isModelless reports whether a chat begins in a namespace without a default model.
func isModelless(o operation) bool { return o.verb == "chat" && slices.Contains(o.args, "modelless") }

// defaultConfig is the default model of a namespace.
func defaultConfig(namespace string) *v1beta1.ChatModelConfig {
	return chattest.In(namespace, chattest.Config("default", chattest.Default, priced))
}

func (d *driver) giveModel(ctx context.Context) error {
	config := defaultConfig(d.chat.Namespace)
	err := cluster.Client.Create(ctx, config)
	if apierrors.IsAlreadyExists(err) {
		return setDefault(ctx, config, true)
	}
	if err != nil {
		return fmt.Errorf("creating the default ChatModelConfig: %w", err)
	}
	return nil
}

// takeModel makes the ChatModelConfig that of no chat, and waits until the operator knows.
func (d *driver) takeModel(ctx context.Context) error {
	config := defaultConfig(d.chat.Namespace)
	if err := setDefault(ctx, config, false); err != nil {
		return err
	}
	return awaitObserved(ctx, config)
}

func setDefault(ctx context.Context, config *v1beta1.ChatModelConfig, is bool) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"default":%t}}`, is))
	if err := cluster.Client.Patch(ctx, config, patch); err != nil {
		return fmt.Errorf("changing the default ChatModelConfig: %w", err)
	}
	return nil
}

// excuse lets a chat that is not settled take its time to say that it waits for a class or a model: its manifest may
// still bring that. A turn that is held for one may say at any time that a person has to create it.
func excuse(want reference.View, got *reference.View, settled bool) {
	for _, missing := range references {
		waits := reference.Words(metav1.ConditionUnknown, missing)
		needsPerson := reference.Words(metav1.ConditionFalse, missing)
		if want.Ready == waits && got.Ready == needsPerson || !settled && want.Ready == needsPerson && got.Ready == waits {
			got.Ready = want.Ready
		}
	}
	if settled {
		return
	}
	for name, state := range got.Messages {
		isTaken := strings.HasPrefix(state, string(v1beta1.MessageCommitted)) ||
			strings.HasPrefix(state, string(v1beta1.MessageQueued))
		if want.Messages[name] == reference.WaitsForChat && !isTaken {
			got.Messages[name] = reference.WaitsForChat
		}
	}
}
