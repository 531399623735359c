// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/faultclient"
)

// lag is how much a manager's view is behind while a write goes wrong, so that its next try rests on what was before.
const lag = 30 * time.Millisecond

// mishap is one thing that can go wrong with a write.
type mishap struct {
	name string
	// fits reports whether it can happen to the write; nil: to each.
	fits func(faultclient.Write) bool
	// once reports whether it is tried with such a write only in the scenarios that disturb every write, and with the
	// first one of the others; nil: with all.
	once func(faultclient.Write) bool
	// fault in the given namespace, all but when it happens.
	fault func(ns string, w faultclient.Write) faultclient.Fault
}

var mishaps = []mishap{
	{name: "never gets out", fault: func(string, faultclient.Write) faultclient.Fault {
		return faultclient.Fault{Effect: faultclient.Fails}
	}},
	{name: "is applied without an answer", fault: func(string, faultclient.Write) faultclient.Fault {
		return faultclient.Fault{Effect: faultclient.TimesOut}
	}},
	{name: "conflicts with another write", fits: replaces, once: ofMessage,
		fault: func(ns string, w faultclient.Write) faultclient.Fault {
			return faultclient.Fault{Effect: faultclient.Passes, Before: func(ctx context.Context) { touch(ctx, ns, w) }}
		}},
	// What is left behind is what the crash after the write before it leaves behind.
	{name: "never gets out and the process dies", once: every, fault: func(string, faultclient.Write) faultclient.Fault {
		return faultclient.Fault{Effect: faultclient.Fails, Dies: true}
	}},
	{name: "is applied and the process dies", fault: func(string, faultclient.Write) faultclient.Fault {
		return faultclient.Fault{Effect: faultclient.TimesOut, Dies: true}
	}},
}

// happensTo reports whether the mishap is tried with the write; all is true where no kind of mishap may be left out.
func (m mishap) happensTo(w faultclient.Write, all bool) bool {
	if m.fits != nil && !m.fits(w) {
		return false
	}
	return all || m.once == nil || !m.once(w)
}

// replaces reports whether the write is a compare-and-swap.
func replaces(w faultclient.Write) bool { return w.Verb == "update" }

// ofMessage reports whether the write is about a message: all of these are one and the same write.
func ofMessage(w faultclient.Write) bool { return strings.HasPrefix(w.Resource, "chatmessages") }

func every(faultclient.Write) bool { return true }

// touch writes something to the object that matters to nobody.
func touch(ctx context.Context, ns string, w faultclient.Write) {
	var o client.Object = &v1beta1.Chat{}
	switch {
	case strings.HasPrefix(w.Resource, "chatmessages"):
		o = &v1beta1.ChatMessage{}
	case strings.HasPrefix(w.Resource, "chatmodelconfigs"):
		o = &v1beta1.ChatModelConfig{}
	}
	o.SetNamespace(ns)
	o.SetName(w.Name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"crash.test/touched":"yes"}}}`))
	// An object that is gone has met its conflict.
	_ = client.IgnoreNotFound(cluster.Client.Patch(ctx, o, patch))
}

// disturbance is what is wrong in one run.
type disturbance struct {
	// name is the end of a sentence that begins with the scenario, and with the write if one is disturbed.
	name string
	// managers that run at once in the given namespace, and what is wrong with each. Only its first life has the fault.
	managers func(ns string) []faultclient.Options
	// wasteful is true when attempts may be made more often than needed.
	wasteful bool
	// quiet is how long nothing may happen at the end.
	quiet time.Duration
	// once is true if it is tried in the scenarios that disturb every write, and no others.
	once bool
}

const (
	// shortQuiet is how long nothing may happen at the end of a run.
	shortQuiet = 250 * time.Millisecond
	// longQuiet is longer than any wait that the controllers give themselves, so that what they have put off shows.
	longQuiet = 1500 * time.Millisecond
)

// none is the run in which nothing goes wrong.
var none = disturbance{name: "nothing goes wrong", managers: with(faultclient.Options{}), quiet: longQuiet}

// weathers are what is wrong all the time, with no write in particular.
var weathers = []disturbance{
	{name: "all views lag", managers: with(lagging("*")), quiet: longQuiet},
	{name: "the view of chats lags", managers: with(lagging("chats")), quiet: longQuiet},
	{name: "the view of messages lags", managers: with(lagging("chatmessages")), quiet: longQuiet},
	{name: "the view of pods lags", managers: with(lagging("pods")), quiet: longQuiet, once: true},
	{name: "two managers work at once", managers: with(faultclient.Options{}, faultclient.Options{}), wasteful: true,
		quiet: longQuiet},
	{name: "two managers work at once and one lags", managers: with(faultclient.Options{}, lagging("*")), wasteful: true,
		quiet: longQuiet},
}

func with(managers ...faultclient.Options) func(string) []faultclient.Options {
	return func(string) []faultclient.Options { return managers }
}

// lagging is a manager whose view of the resources is behind for longer than most of its work takes.
func lagging(resources ...string) faultclient.Options {
	return faultclient.Options{WatchDelay: func(resource string) time.Duration {
		if slices.Contains(resources, resource) || slices.Contains(resources, "*") {
			return 8 * lag
		}
		return 0
	}}
}

// at is the mishap of the given write.
func (m mishap) at(target faultclient.Write) disturbance {
	return disturbance{name: m.name, quiet: shortQuiet, managers: func(ns string) []faultclient.Options {
		fault := m.fault(ns, target)
		fault.At = func(_ int, w faultclient.Write) bool { return w == target }
		o := faultclient.Options{Fault: &fault}
		if !fault.Dies {
			o.WatchDelay = func(string) time.Duration { return lag }
		}
		return []faultclient.Options{o}
	}}
}

// ofConversation reports whether the write is about a chat or its messages.
func ofConversation(w faultclient.Write) bool {
	return strings.HasPrefix(w.Resource, "chats") || ofMessage(w)
}
