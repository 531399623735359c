// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"

	"parley.dev/parley/api/stream"
)

// Reset says from where on the history is not what it was: messages were edited or deleted.
type Reset struct {
	// Other is true when another chat has taken the name.
	Other bool
	// From is the index of the first message that is not what it was, and Length that of the history before.
	From, Length int64
	// More is true when messages follow from there.
	More bool
}

// Updates reads what an event changes, for whoever reads along: nothing, one update, or several. EventHistoryReset
// tells the whole history again. Updates holds that back until the status that ends it, and then returns a Reset, if
// anything is not what it was, and the messages that are new. Take each update before the next event.
func (t *Transcript) Updates(e stream.Event) ([]Update, error) {
	u, err := Decode(e)
	if err != nil || u == nil {
		return nil, err
	}
	switch u := u.(type) {
	case *Reset:
		t.resetting, t.held, t.retold = true, nil, map[string]bool{}
		return nil, nil
	case *stream.MessageCommitted:
		if t.resetting {
			t.held = append(t.held, u)
			return nil, nil
		}
	case *stream.Status:
		if t.resetting {
			return append(t.difference(u), u), nil
		}
	}
	return []Update{u}, nil
}

// difference is what a reset has changed, and what is new. A chat's version never sinks: one that did is another
// chat's. Messages that were committed before the reset were told, or not wanted.
func (t *Transcript) difference(s *stream.Status) (updates []Update) {
	r := &Reset{Other: s.HistoryVersion < t.version, From: s.Length, Length: t.length}
	for _, m := range t.held {
		if r.Other || m.HistoryVersion > t.version {
			r.From, r.More = min(r.From, m.Index), true
			updates = append(updates, m)
		}
	}
	t.resetting, t.held, t.Live = false, nil, nil // The parts are told again, too.
	if r.Other || r.From < r.Length {
		updates = slices.Insert(updates, 0, Update(r))
	}
	return updates
}

// reset forgets what is void. The notes are told again.
func (t *Transcript) reset(r *Reset) {
	from := r.From
	if r.Other {
		from = 0
	}
	t.Messages = slices.DeleteFunc(t.Messages, func(m stream.MessageCommitted) bool { return m.Index >= from })
	t.Live, t.Action, t.Retry, t.Error, t.isCurrent = nil, nil, nil, nil, false
	if t.retold == nil {
		t.retold = map[string]bool{}
	}
}
