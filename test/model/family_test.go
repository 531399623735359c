// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/model/reference"
)

// familyVerbs are what people do with a sub-chat. "sub" is before whatever they do to it that they do to any chat.
var familyVerbs = map[string]verb{
	"spawn": {
		able: func(c *reference.Chat, o operation) bool { return c.Name == "" && c.Sub == nil && o.arg(0) != "" },
		model: func(c *reference.Chat, o operation) {
			sub := reference.New(reference.Limits{MaxQueue: 20, MaxSteps: 1200})
			c.Spawn(o.arg(0), sub)
			if slices.Contains(o.args, "prompt") {
				sub.Send("prompt", false)
			}
		},
		real: func(ctx context.Context, d *driver, o operation) error { return d.spawn(ctx, o) },
	},
	"despawn": {
		able: func(c *reference.Chat, _ operation) bool {
			// With the manager that is killed goes what the running turn has cost.
			return c.Sub != nil && (*lifeFlag == 0 || !c.HasBudget() || !c.Sub.Phase.HasTurn())
		},
		model: func(c *reference.Chat, _ operation) { c.DeleteSub() },
		real:  func(ctx context.Context, d *driver, _ operation) error { return d.despawn(ctx) },
	},
	"sub": {
		able: func(c *reference.Chat, o operation) bool { return c.Sub != nil && possible(c.Sub, inner(o)) },
		model: func(c *reference.Chat, o operation) {
			verbs[o.arg(0)].model(c.Sub, inner(o))
			c.Proceed() // It may have waited for that.
		},
		real: func(ctx context.Context, d *driver, o operation) error {
			return verbs[o.arg(0)].real(ctx, d.sub, inner(o))
		},
	},
}

// inner is what is done to the sub-chat.
func inner(o operation) operation {
	if len(o.args) == 0 {
		return operation{}
	}
	return operation{verb: o.args[0], args: o.args[1:]}
}

func (d *driver) spawn(ctx context.Context, o operation) error {
	d.sub = newDriver(d.chat.Namespace, d.name(o.arg(0)))
	chat := d.sub.bareChat()
	chat.Spec.ParentRef = &v1beta1.ChatReference{Name: d.chat.Name}
	if slices.Contains(o.args, "prompt") {
		chat.Spec.Prompt = "hello"
	}
	return d.sub.create(ctx, chat)
}

func (d *driver) despawn(ctx context.Context) error {
	sub := d.sub
	if err := d.awaitRecord(ctx); err != nil {
		return err
	}
	d.sub = nil
	defer watched.forget(sub.chat)
	if err := cluster.Client.Delete(ctx, sub.bareChat()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the sub-chat: %w", err)
	}
	return nil
}

// waitsFor are the calls of a reply that wait for the sub-chat.
func (d *driver) waitsFor(key string, kinds []string) chattest.Reply {
	return func(m *v1beta1.ChatMessage) {
		for i, kind := range kinds {
			if kind == "wait" && d.sub != nil {
				m.Spec.Generation.WaitingFor = append(m.Spec.Generation.WaitingFor,
					v1beta1.WaitingCall{ID: callID(key, i), Chat: d.sub.chat.Name, TimeoutSeconds: 3600})
			}
		}
	}
}

// member is a chat of the family, and the model of it.
type member struct {
	*driver
	model *reference.Chat
	// version of its history before an operation.
	version int64
}

func (d *driver) members(c *reference.Chat) []member {
	all := []member{{driver: d, model: c}}
	if d.sub != nil {
		all = append(all, member{driver: d.sub, model: c.Sub})
	}
	for _, peer := range c.Peers {
		all = append(all, member{driver: d.peers[peer.Name], model: peer})
	}
	return all
}

// others are the sub-chat and the peers.
func (d *driver) others() []*driver {
	all := slices.Collect(maps.Values(d.peers))
	if d.sub != nil {
		all = append(all, d.sub)
	}
	return all
}

// gaveUp reports whether the operator has given an interruption up by itself.
func (d *driver) gaveUp() bool {
	return watched.get(d.chat).gaveUp || slices.ContainsFunc(d.others(), (*driver).gaveUp)
}

// edited are the chats that an edit lets begin again: this operation, or one while the chat was archived.
func (d *driver) edited(c *reference.Chat, o operation) (edited []member) {
	to, does := target(c, o)
	for _, m := range d.members(c) {
		if m.model == to && does.verb == "edit" && m.model.Committed(does.arg(0)) != nil || m.model.Edited() {
			m.version = watched.get(m.chat).chat.Status.History.Version
			edited = append(edited, m)
		}
	}
	return edited
}

// target is the chat to which the operation does something, and what.
func target(c *reference.Chat, o operation) (*reference.Chat, operation) {
	switch o.verb {
	case "sub":
		return c.Sub, inner(o)
	case "peer":
		return c.Peer(o.arg(0)), inner(inner(o))
	}
	return c, o
}

// expectNewVersions makes sure that edits have been seen: the conversation that begins again from the newest message
// looks as it did before, but for its version.
func expectNewVersions(edited []member) {
	for _, m := range edited {
		if !m.model.Edited() && !m.model.Archived { // Else the edited message was deleted before anybody took it up.
			m.newerThan = m.version
		}
	}
}

// allAgree waits until every chat of the family is where the model is.
func (d *driver) allAgree(ctx context.Context, c *reference.Chat, settled bool, patience time.Duration) error {
	for _, m := range d.members(c) {
		if err := m.agree(ctx, m.model, settled, patience); err != nil {
			return m.told(err)
		}
	}
	return nil
}

// allEnd lets every chat of the family come to rest.
func (d *driver) allEnd(ctx context.Context, c *reference.Chat, patience time.Duration) error {
	for _, m := range d.members(c) {
		if err := m.end(ctx, m.model, patience); err != nil {
			return m.told(err)
		}
	}
	return nil
}

// told says of a difference in which other chat it is.
func (m member) told(err error) error {
	if d, ok := errors.AsType[*difference](err); ok && m.model.Name != "" {
		d.what = "in " + m.model.Name + ": " + d.what
	}
	return err
}

// forget drops the accounts of the family and the peers.
func (d *driver) forget() {
	watched.forget(d.chat)
	for _, other := range d.others() {
		other.forget()
	}
}
