// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/model/reference"
)

// referenceName is the name of the class or the model that a chat names.
const referenceName = "named"

// references are the words with which a chat is created that names an object which does not exist yet, and what the
// chat says of that.
var references = map[string]v1beta1.ErrorReason{
	"classed": v1beta1.ErrorChatClassNotFound, "modelled": v1beta1.ErrorModelConfigNotFound,
}

// referenceVerbs are what people do with the class or the model that the chat names.
var referenceVerbs = map[string]verb{
	"ref": {
		able:  func(c *reference.Chat, _ operation) bool { return c.IsReferenceMissing() },
		model: func(c *reference.Chat, _ operation) { c.GiveReference() },
		real: func(ctx context.Context, d *driver, _ operation) error {
			return createObject(ctx, d.referred(referenceName))
		},
	},
	"unref": {
		able: func(c *reference.Chat, _ operation) bool {
			return *managersFlag == 1 && c.Refers() != "" && !c.IsReferenceMissing()
		},
		model: func(c *reference.Chat, _ operation) { c.TakeReference() },
		real:  func(ctx context.Context, d *driver, _ operation) error { return d.takeReference(ctx) },
	},
}

// reasonOf is what a chat that is created so says of what it names; empty if it names nothing.
func reasonOf(o operation) v1beta1.ErrorReason {
	for word, reason := range references {
		if o.verb == "chat" && slices.Contains(o.args, word) {
			return reason
		}
	}
	return ""
}

// referTo lets the chat name what its operation says.
func (d *driver) referTo(chat *v1beta1.Chat, o operation) {
	switch d.refers = reasonOf(o); d.refers {
	case v1beta1.ErrorChatClassNotFound:
		chat.Spec.ChatClassName = referenceName
	case v1beta1.ErrorModelConfigNotFound:
		chat.Spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: referenceName}
	}
}

// referred is an object of the kind that the chat names.
func (d *driver) referred(name string) client.Object {
	if d.refers == v1beta1.ErrorChatClassNotFound {
		return chattest.In(d.chat.Namespace, chattest.Class(name))
	}
	return chattest.In(d.chat.Namespace, chattest.Config(name, priced))
}

// takeReference deletes what the chat names, and waits until the operator has seen another object of the kind that was
// created later.
func (d *driver) takeReference(ctx context.Context) error {
	if err := cluster.Client.Delete(ctx, d.referred(referenceName)); err != nil {
		return fmt.Errorf("deleting what the chat names: %w", err)
	}
	later := d.referred("later-" + rand.String(8))
	if err := createObject(ctx, later); err != nil {
		return err
	}
	return awaitObserved(ctx, later)
}

func createObject(ctx context.Context, o client.Object) error {
	if err := cluster.Client.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %s: %w", id(o), err)
	}
	return nil
}

// awaitObserved waits until the status of the class or the model shows that the operator knows it as it is.
func awaitObserved(ctx context.Context, o client.Object) error {
	for observed(o) != o.GetGeneration() {
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("waiting until the operator knows %s: %w", id(o), ctx.Err())
		}
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return fmt.Errorf("reading %s: %w", id(o), err)
		}
	}
	return nil
}

func observed(o client.Object) int64 {
	switch o := o.(type) {
	case *v1beta1.ChatClass:
		return o.Status.ObservedGeneration
	case *v1beta1.ChatModelConfig:
		return o.Status.ObservedGeneration
	}
	return 0
}
