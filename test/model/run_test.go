// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/model/reference"
)

const (
	// quiet is how long nothing may be written to a chat's objects before they count as at rest.
	quiet = 1500 * time.Millisecond
	// interruptPatience is after how long the operator gives an interrupted attempt up by itself. A sequence that was
	// slower than most of it proves nothing.
	interruptPatience = 10 * time.Second
)

// errTooSlow means that the machine was too slow for the sequence to prove anything.
var errTooSlow = errors.New("the machine was too slow for the sequence to prove anything")

// difference is where the operator was not where the model is.
type difference struct {
	// at is the index of the operation after which that was so.
	at int
	// what differs.
	what string
}

func (d *difference) Error() string { return d.what }

// run carries a sequence out on a new chat. The error is a difference, or what kept it from being carried out.
func run(ctx context.Context, namespace, name string, ops []operation, patience time.Duration) (done int, err error) {
	d := newDriver(namespace, name)
	defer func() {
		err = errors.Join(err, d.remove(ctx))
		d.forget()
	}()
	c, begun := beginning(ops[0]), time.Now()
	if err := d.begin(ctx, ops[0]); err != nil {
		return 0, err
	}
	if err := d.allAgree(ctx, c, false, patience); err != nil {
		return 0, d.fault(0, begun, err)
	}
	interrupting := time.Time{}
	for i, o := range ops[1:] {
		if !possible(c, o) {
			continue
		}
		if !interrupting.IsZero() && time.Since(interrupting) > interruptPatience {
			return done, errTooSlow
		}
		settled, since := o.verb == "settle", time.Now()
		again := d.edited(c, o)
		if err := d.carryOut(ctx, o, patience); err != nil {
			return done, d.fault(i+1, since, err)
		}
		means(c, o)
		expectNewVersions(again)
		done++
		if o.hasty {
			continue
		}
		err := d.allAgree(ctx, c, settled, patience)
		if err != nil {
			return done, d.fault(i+1, since, err)
		}
		d.look()
		if !c.Interrupting() {
			interrupting = time.Time{}
		} else if interrupting.IsZero() {
			interrupting = time.Now()
		}
	}
	since := time.Now()
	if err := d.allEnd(ctx, c, patience); err != nil {
		return done, d.fault(len(ops)-1, since, err)
	}
	return done, nil
}

// remove deletes the chat and its peers, which may be at work: those that are, the operator lets only be so many.
func (d *driver) remove(ctx context.Context) error {
	for _, peer := range d.peers {
		if err := peer.remove(ctx); err != nil {
			return err
		}
	}
	if err := client.IgnoreNotFound(cluster.Client.Delete(ctx, d.bareChat())); err != nil {
		return fmt.Errorf("deleting the chat: %w", err)
	}
	return nil
}

func (d *driver) carryOut(ctx context.Context, o operation, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return verbs[o.verb].real(ctx, d, o)
}

// fault is what is wrong after an operation that was carried out since then, unless the machine was too slow to tell:
// the operator gave an interruption up before the sequence answered it, or the machine stood still.
func (d *driver) fault(i int, since time.Time, err error) error {
	if d.gaveUp() || heart.stoodStill(since) {
		return errTooSlow
	}
	return at(i, err)
}

func at(i int, err error) error {
	if d, ok := errors.AsType[*difference](err); ok {
		d.at = i
		return d
	}
	return &difference{at: i, what: err.Error()}
}

// agree waits until the real chat is where the model is. That a turn is under way is said of its message a second late,
// so as not to compete with the call of the model: only a settled chat must say it.
func (d *driver) agree(ctx context.Context, c *reference.Chat, settled bool, patience time.Duration) error {
	deadline := time.After(patience)
	want := c.See()
	for {
		o := watched.get(d.chat)
		what := d.behind(o)
		if what == "" {
			what = d.compare(want, o, settled)
		}
		if more := watched.exceeded(d.chat.Namespace); more != "" {
			return &difference{what: more}
		}
		if what == "" {
			return nil
		}
		select {
		case <-o.changed:
		case <-deadline:
			if left := patience - age(); left > 0 { // What the one before it did not do, the next one must.
				deadline = time.After(left)
				continue
			}
			return &difference{what: fmt.Sprintf("%s\nby a manager that began %s before", what, age().Round(time.Second))}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// behind says which write of the driver is not in what it looks at.
func (d *driver) behind(o objects) string {
	if o.chat != nil && o.chat.Status.History.Version <= d.newerThan {
		return "the chat has not begun again from the edited message"
	}
	for object, version := range d.written {
		if o.seen[object] < version {
			return "the watch does not show " + object
		}
	}
	return ""
}

func (d *driver) compare(want reference.View, o objects, settled bool) string {
	got, wrong := d.observe(o)
	if user, _, _ := strings.Cut(want.Turn, " "); !settled && want.Messages[user] == beingAnswered {
		got.Messages[user] = beingAnswered
	}
	excuse(want, &got, settled)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		wrong = append(wrong, "the model (-) and the operator (+) differ:\n"+diff)
	}
	return strings.Join(wrong, "\n")
}

var beingAnswered = reference.Words(v1beta1.MessageCommitted, "Unknown", v1beta1.ReasonAnswering)

// end lets the chat come to rest: it agrees in everything, nothing is written any more, and the API server itself says
// the same as the watches.
func (d *driver) end(ctx context.Context, c *reference.Chat, patience time.Duration) error {
	deadline := time.After(patience)
	for {
		if err := d.agree(ctx, c, true, patience); err != nil {
			return err
		}
		select {
		case <-watched.get(d.chat).changed:
			continue
		case <-time.After(quiet):
		case <-deadline:
			return &difference{what: "the objects of the chat do not come to rest"}
		case <-ctx.Done():
			return ctx.Err()
		}
		live, err := d.read(ctx)
		if err != nil {
			return err
		}
		if what := d.compare(c.See(), live, true); what != "" {
			return &difference{what: what}
		}
		return nil
	}
}

// read reads the chat's objects from the API server.
func (d *driver) read(ctx context.Context) (objects, error) {
	o := objects{chat: d.bareChat(), messages: map[string]*v1beta1.ChatMessage{},
		approvals: map[string]*v1beta1.ToolApproval{}}
	if err := cluster.Client.Get(ctx, d.chat, o.chat); err != nil {
		return o, fmt.Errorf("reading the chat: %w", err)
	}
	of := []client.ListOption{client.InNamespace(d.chat.Namespace),
		client.MatchingFields{"spec.chatRef.name": d.chat.Name}}
	var messages v1beta1.ChatMessageList
	if err := cluster.Client.List(ctx, &messages, of...); err != nil {
		return o, fmt.Errorf("listing the messages: %w", err)
	}
	for i := range messages.Items {
		o.messages[messages.Items[i].Name] = &messages.Items[i]
	}
	var approvals v1beta1.ToolApprovalList
	if err := cluster.Client.List(ctx, &approvals, of...); err != nil {
		return o, fmt.Errorf("listing the approvals: %w", err)
	}
	for i := range approvals.Items {
		o.approvals[approvals.Items[i].Name] = &approvals.Items[i]
	}
	return o, nil
}
