// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"

	"parley.dev/parley/api/stream"
)

// lens makes a reset of the history what it is for somebody who reads along: what was said before the cut is not told
// again, and the reset says what has changed. It holds everything back from a reset to the status that follows the
// messages.
type lens struct {
	// version and length of the history, as far as they are known; version is 0 before the first event that tells it.
	version, length int64
	resetting       bool
	messages        []seenMessage
}

type seenMessage struct {
	event  stream.Event
	commit stream.MessageCommitted
}

// change is the data of EventHistoryReset behind a lens.
type change struct {
	// Other is true when another chat has taken the name.
	Other bool
	// From is the index of the first message that is not what it was, and Length that of the history before.
	From, Length int64
	// More is true when messages follow from there.
	More bool
}

// pass takes an event and returns what it is to be read as: nothing, itself, or several.
func (l *lens) pass(e stream.Event) ([]stream.Event, error) {
	switch e.Name {
	case stream.EventHistoryReset:
		l.resetting, l.messages = true, nil
		return nil, nil
	case stream.EventMessage:
		m := seenMessage{event: e}
		if err := json.Unmarshal(e.Data, &m.commit); err != nil {
			return nil, fmt.Errorf("reading a message: %w", err)
		}
		if l.resetting {
			l.messages = append(l.messages, m)
			return nil, nil
		}
		l.version, l.length = max(l.version, m.commit.HistoryVersion), m.commit.Index+1
	case stream.EventStatus:
		var status stream.Status
		if err := json.Unmarshal(e.Data, &status); err != nil {
			return nil, fmt.Errorf("reading a status: %w", err)
		}
		defer func() { l.version, l.length = status.HistoryVersion, status.Length }()
		if l.resetting {
			return l.settle(e, status)
		}
	}
	return []stream.Event{e}, nil
}

// settle tells what a reset has changed, and then what is new. A chat's version never sinks: one that did is another
// chat's. Messages that were committed before the reset were told, or not wanted.
func (l *lens) settle(e stream.Event, status stream.Status) (told []stream.Event, err error) {
	c := change{Other: status.HistoryVersion < l.version, From: status.Length, Length: l.length}
	for _, m := range l.messages {
		if c.Other || m.commit.HistoryVersion > l.version {
			c.From, c.More = min(c.From, m.commit.Index), true
			told = append(told, m.event)
		}
	}
	l.resetting, l.messages = false, nil
	if c.Other || c.From < c.Length {
		data, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("telling a reset: %w", err)
		}
		told = append([]stream.Event{{Name: stream.EventHistoryReset, Data: data}}, told...)
	}
	return append(told, e), nil
}

// String says what has changed, counting messages from 1 as people do.
func (c *change) String() string {
	first := c.From + 1
	switch {
	case c.Other:
		return "another chat of this name has begun"
	case c.More:
		return fmt.Sprintf("the conversation was changed from message %d on; it continues like this:", first)
	case first == c.Length:
		return fmt.Sprintf("message %d was deleted", first)
	}
	return fmt.Sprintf("messages %d to %d were deleted", first, c.Length)
}
