// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"strconv"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/model/reference"
)

// peopleVerbs are what people do with messages.
var peopleVerbs = map[string]verb{
	"send": {
		able:  isNew,
		model: func(c *reference.Chat, o operation) { c.Send(o.arg(0), false) },
		real:  func(ctx context.Context, d *driver, o operation) error { return d.send(ctx, o.arg(0), "") },
	},
	"cutin": {
		able:  isNew,
		model: func(c *reference.Chat, o operation) { c.Send(o.arg(0), true) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.send(ctx, o.arg(0), v1beta1.WhenBusyInterrupt)
		},
	},
	"hold": {
		able:  func(c *reference.Chat, o operation) bool { return reference.Holds{Chat: c}.MayHold(o.arg(0)) },
		model: func(c *reference.Chat, o operation) { reference.Holds{Chat: c}.Hold(o.arg(0)) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.patch(ctx, d.message(o.arg(0)), `{"metadata":{"annotations":{%q:%q}}}`, v1beta1.AnnotationHoldUntil,
				time.Now().Add(10*time.Minute).Format(time.RFC3339))
		},
	},
	"release": {
		able:  func(c *reference.Chat, o operation) bool { return isUser(c, o) && c.Person(o.arg(0)).Held },
		model: func(c *reference.Chat, o operation) { reference.Holds{Chat: c}.Release(o.arg(0)) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.patch(ctx, d.message(o.arg(0)), `{"metadata":{"annotations":{%q:null}}}`, v1beta1.AnnotationHoldUntil)
		},
	},
	"edit": {
		able:  isUser,
		model: func(c *reference.Chat, o operation) { c.Edit(o.arg(0)) },
		real:  func(ctx context.Context, d *driver, o operation) error { return d.edit(ctx, o.arg(0)) },
	},
	"promote": {
		able: func(c *reference.Chat, o operation) bool {
			return isUser(c, o) && !c.Person(o.arg(0)).CutsIn && !c.Person(o.arg(0)).Held
		},
		model: func(c *reference.Chat, o operation) { c.CutIn(o.arg(0)) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.patch(ctx, d.message(o.arg(0)), `{"spec":{"whenBusy":"Interrupt"}}`)
		},
	},
	"delete": {
		able: func(c *reference.Chat, o operation) bool {
			again := o.arg(0) == "prompt" && !c.Begun // It would be made again from spec.prompt.
			return !again && (c.Person(o.arg(0)) != nil || c.Committed(o.arg(0)) != nil)
		},
		model: func(c *reference.Chat, o operation) { c.Delete(o.arg(0)) },
		real:  func(ctx context.Context, d *driver, o operation) error { return d.delete(ctx, o.arg(0)) },
	},
}

func isNew(c *reference.Chat, o operation) bool {
	return c.Person(o.arg(0)) == nil && c.Committed(o.arg(0)) == nil
}

func isUser(c *reference.Chat, o operation) bool {
	m := c.Person(o.arg(0))
	return m != nil && m.Role == v1beta1.RoleUser
}

// steerVerbs are what people do to the chat as a whole.
var steerVerbs = map[string]verb{
	"interrupt": {
		able:  always,
		model: func(c *reference.Chat, o operation) { c.Interrupt(o.arg(0)) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.annotate(ctx, v1beta1.AnnotationInterrupt, o.arg(0))
		},
	},
	"clear": {
		able:  always,
		model: func(c *reference.Chat, o operation) { c.Clear(o.arg(0)) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.annotate(ctx, v1beta1.AnnotationClear, o.arg(0))
		},
	},
	"compact": {
		able:  always,
		model: func(c *reference.Chat, o operation) { c.Compact(o.arg(0)) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.annotate(ctx, v1beta1.AnnotationCompact, o.arg(0))
		},
	},
	"refresh": {
		able:  always,
		model: func(c *reference.Chat, o operation) { c.RefreshContext(o.arg(0)) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.annotate(ctx, v1beta1.AnnotationRefreshContext, o.arg(0))
		},
	},
	"suspend": {
		able:  func(c *reference.Chat, _ operation) bool { return !c.Suspended },
		model: func(c *reference.Chat, _ operation) { c.Suspend() },
		real: func(ctx context.Context, d *driver, _ operation) error {
			return d.patch(ctx, d.bareChat(), `{"spec":{"suspend":true}}`)
		},
	},
	"resume": {
		able:  func(c *reference.Chat, _ operation) bool { return c.Suspended },
		model: func(c *reference.Chat, _ operation) { c.Resume() },
		real: func(ctx context.Context, d *driver, _ operation) error {
			return d.patch(ctx, d.bareChat(), `{"spec":{"suspend":false}}`)
		},
	},
	"archive": {
		able: func(c *reference.Chat, _ operation) bool {
			return !c.ToArchive && len(reference.Holds{Chat: c}.Names()) == 0
		},
		model: func(c *reference.Chat, _ operation) { c.Archive() },
		real: func(ctx context.Context, d *driver, _ operation) error {
			return d.patch(ctx, d.bareChat(), `{"spec":{"archived":true}}`)
		},
	},
	"unarchive": {
		able:  func(c *reference.Chat, _ operation) bool { return c.ToArchive },
		model: func(c *reference.Chat, _ operation) { c.Unarchive() },
		real: func(ctx context.Context, d *driver, _ operation) error {
			return d.patch(ctx, d.bareChat(), `{"spec":{"archived":false}}`)
		},
	},
	"maxqueue": {
		able: always,
		model: func(c *reference.Chat, o operation) {
			c.Limits.MaxQueue, _ = strconv.Atoi(o.arg(0)) // It was drawn as a number.
		},
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.patch(ctx, d.bareChat(), `{"spec":{"limits":{"maxQueue":%s}}}`, o.arg(0))
		},
	},
	"label": {
		able: always, model: nothing,
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.patch(ctx, d.bareChat(), `{"metadata":{"labels":{"label":%q}}}`, o.arg(0))
		},
	},
	"anew": {
		able: func(c *reference.Chat, _ operation) bool { return c.MayBeginAnew() },
		model: func(c *reference.Chat, o operation) {
			c.Anew(limitsOf(o))
			begins(c, o)
		},
		real: func(ctx context.Context, d *driver, o operation) error { return d.anew(ctx, o) },
	},
	"reapply": {
		able: always, model: nothing,
		real: func(ctx context.Context, d *driver, _ operation) error { return d.reapply(ctx) },
	},
	"settle": {
		able: always, model: nothing,
		real: func(context.Context, *driver, operation) error { return nil },
	},
}
