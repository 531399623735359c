// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
)

// keepBytes is how much of a long history is kept in memory while it is walked back from its head. The rest is fetched
// again when it is sent.
const keepBytes = 16 << 20

// cursor is what the client has.
type cursor struct {
	// resume is where the client was before this stream; nil once it was compared with the chat.
	resume *Position
	uid    types.UID
	// identity is the short form of uid, as event ids have it.
	identity string
	next     int64  // index of the first message that the client does not have
	head     string // name of the last one that it has
	final    bool   // whether that one was generated, so that no other message can ever have its name
	last     int64  // how many of the newest messages it gets at the start; 0: all
	preview
}

// preview is the attempt whose parts the client may have, up to number seq; none if the attempt is 0.
type preview struct {
	version int64
	attempt int32
	seq     int64
}

// held is the preview that the client came with, or that this stream sent.
func (c *cursor) held() preview {
	if c.resume != nil {
		return preview{version: c.resume.Version, attempt: c.resume.Attempt, seq: c.resume.Number}
	}
	return c.preview
}

// isCurrent reports whether the preview's attempt is the running one.
func (p preview) isCurrent(chat *v1beta1.Chat) bool {
	g := chat.Status.Generation
	return g != nil && p.attempt == g.Attempt && p.version == chat.Status.History.Version
}

// isVoid reports whether the client has parts of an attempt that does not run.
func (p preview) isVoid(chat *v1beta1.Chat) bool {
	return p.attempt > 0 && p.seq > 0 && !p.isCurrent(chat)
}

// became reports whether the message is what the attempt of the preview generated.
func (p preview) became(m *Committed) bool {
	return p.attempt > 0 && m.Attempt == p.attempt && m.Version == p.version+1
}

// goal is where a walk from the head of the history ends: the last message that the client has. If that is unchanged,
// all before it is as well, since an edit or a deletion truncates the history behind it.
type goal struct {
	// next is the index behind that message.
	next int64
	// head is that message's name, if known, and final whether the name alone identifies it.
	head  string
	final bool
	// version of the history when the client had it. The message's own is at most that, unless it was committed again; it
	// is the same if exact.
	version int64
	exact   bool
	// unverified ends the walk there, whatever the message is: the client has nothing.
	unverified bool
}

// start is the goal of a walk for a client that has nothing.
func (c *cursor) start(chat *v1beta1.Chat) goal {
	if c.last == 0 {
		return goal{}
	}
	return goal{next: max(0, chat.Status.History.Length-c.last), unverified: true}
}

// goal derives from the client's position where a walk ends. It is false if no walk can end there.
func (c *cursor) goal(chat *v1beta1.Chat) (g goal, possible bool) {
	history := chat.Status.History
	switch p := c.resume; {
	case p == nil && c.uid != chat.UID, p != nil && p.Chat != "" && p.Chat != identity(chat.UID):
		return goal{}, false
	case p == nil:
		g = goal{next: c.next, head: c.head, final: c.final, version: c.version}
	case p.isStart():
		g = c.start(chat)
	case p.Now:
		g = goal{next: history.Length, head: history.Head, version: history.Version}
	case p.Attempt > 0:
		g = goal{next: p.Length, version: p.Version}
	default:
		g = goal{next: p.Number, version: p.Version, exact: true}
	}
	return g, g.next <= history.Length && g.version <= history.Version
}

// item is a message to send. The message is nil if it has to be fetched again.
type item struct {
	place   Place
	message *Committed
}

// news is what was committed since the client's position.
type news struct {
	reset    bool
	messages []*item
	// hasPreview is whether the attempt of the client's preview generated one of the messages.
	hasPreview bool
	// final is whether the newest message was generated, if that is known.
	final bool
	// bytes of the messages.
	bytes int
}

// add adds a message, the newest first. Its data is kept if there is memory for it.
func (t *transcript) add(n *news, place Place, message *Committed) {
	if len(n.messages) == 0 {
		n.final = message.Base > 0
	}
	n.hasPreview = n.hasPreview || t.at.held().became(message)
	found := &item{place: place}
	if n.bytes += len(message.Data); n.bytes <= keepBytes && t.memory.keep(len(message.Data)) {
		found.message = message
	}
	n.messages = append(n.messages, found)
}

// news finds what to send. It changes nothing, so it can be called again after an error.
func (t *transcript) news(ctx context.Context, chat *v1beta1.Chat) (news, error) {
	if t.at.resume == nil && t.at.uid == chat.UID && t.at.version == chat.Status.History.Version {
		return news{final: t.at.final}, nil
	}
	if g, possible := t.at.goal(chat); possible {
		n, reached, err := t.walk(ctx, chat, g)
		if err == nil && reached {
			return n, nil
		}
		t.memory.release(n.messages...)
		if err != nil {
			return news{}, err
		}
	}
	n, _, err := t.walk(ctx, chat, t.at.start(chat))
	if err != nil {
		t.memory.release(n.messages...)
	}
	n.reset = true
	return n, err
}

// walk collects the messages from the chat's head back to a goal, and reports whether the goal is part of the history.
// A missing message ends the walk: what is before it cannot be found.
func (t *transcript) walk(ctx context.Context, chat *v1beta1.Chat, g goal) (n news, reached bool, err error) {
	defer func() { slices.Reverse(n.messages) }()
	var next *Committed
	name := chat.Status.History.Head
	n.final = t.at.final && name == t.at.head
	for index := chat.Status.History.Length - 1; index >= 0 && name != ""; index-- {
		place := PlaceOf(chat, name, index, next)
		if index < g.next {
			if g.unverified {
				return n, true, nil
			}
			reached, err = t.isGoal(ctx, chat, g, place, next)
			return n, reached, err
		}
		message, err := t.messages.Get(ctx, chat, place)
		if errors.Is(err, ErrMissing) {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
		if err := t.alive.sendDue(); err != nil {
			return n, false, err
		}
		t.add(&n, place, message)
		name, next = message.Parent, message.withoutData()
	}
	return n, g.next == 0, nil
}

// isGoal reports whether the message at a place is the one at which the walk ends. Next is the one behind it, if any.
func (t *transcript) isGoal(ctx context.Context, chat *v1beta1.Chat, g goal, place Place, next *Committed) (bool,
	error) {
	switch {
	case g.head != "" && g.head != place.Name:
		return false, nil
	case g.head != "" && g.final, !g.exact && next.proves(g.version):
		return true, nil
	}
	message, err := t.messages.Get(ctx, chat, place)
	if errors.Is(err, ErrMissing) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return message.Version == g.version || !g.exact && message.Version < g.version, nil
}

// proves reports whether the message was generated on a version of the history, which proves what is before it.
func (c *Committed) proves(version int64) bool { return c != nil && c.Base > 0 && c.Base == version }
