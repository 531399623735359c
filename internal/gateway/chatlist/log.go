// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatlist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
)

const (
	// maxEntries is how many changes of a namespace are remembered.
	maxEntries = 1024
	// maxIdle is how many namespaces are remembered without listeners.
	maxIdle = 256
)

// Logs remember the changes in namespaces that have listeners. They are safe for concurrent use.
type Logs struct {
	identity string // of this process, as its event ids have it

	mu         sync.Mutex
	number     int64 // of the last change
	namespaces map[string]*log
}

// log is the changes in one namespace, without gaps.
type log struct {
	from    int64 // number of the last change before its first entry
	entries []entry
	readers map[*reader]struct{}
}

// entry is a change of a chat.
type entry struct {
	number int64
	event  string
	name   string
	uid    types.UID
}

// NewLogs makes empty logs.
func NewLogs() *Logs {
	// It need not be secret.
	return &Logs{identity: fmt.Sprintf("%08x", rand.Uint32()), namespaces: map[string]*log{}}
}

// Changed adds a change of a chat; nil if it did not or does not exist.
func (l *Logs) Changed(before, after *v1beta1.Chat) {
	switch {
	case before == nil && after != nil:
		l.add(after, stream.EventAdded)
	case after == nil && before != nil:
		l.add(before, stream.EventDeleted)
	case before == nil:
	case before.UID != after.UID:
		l.add(before, stream.EventDeleted)
		l.add(after, stream.EventAdded)
	case l.has(after.Namespace) && !apiequality.Semantic.DeepEqual(SummaryOf(before), SummaryOf(after)):
		l.add(after, stream.EventModified)
	}
}

func (l *Logs) has(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.namespaces[namespace] != nil
}

func (l *Logs) add(chat *v1beta1.Chat, event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	log := l.namespaces[chat.Namespace]
	if log == nil {
		return
	}
	log.entries = append(log.entries, entry{number: l.number, event: event, name: chat.Name, uid: chat.UID})
	if len(log.entries) >= 2*maxEntries { // Half of it is dropped at a time, which costs less.
		log.from = log.entries[len(log.entries)-maxEntries-1].number
		log.entries = slices.Clone(log.entries[len(log.entries)-maxEntries:])
	}
	for r := range log.readers {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
}

// reader reads the log of a namespace.
type reader struct {
	logs      *Logs
	namespace string
	changed   chan struct{}
}

// read returns a reader of a namespace's log, which is created if there is none. Stop it when done.
func (l *Logs) read(namespace string) *reader {
	r := &reader{logs: l, namespace: namespace, changed: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.namespaces[namespace] == nil {
		l.makeRoom()
		l.number++ // An earlier log of the namespace is not continued.
		l.namespaces[namespace] = &log{from: l.number, readers: map[*reader]struct{}{}}
	}
	l.namespaces[namespace].readers[r] = struct{}{}
	return r
}

// makeRoom drops the logs without readers, once there are many. The caller holds mu.
func (l *Logs) makeRoom() {
	if len(l.namespaces) < maxIdle {
		return
	}
	for namespace, log := range l.namespaces {
		if len(log.readers) == 0 {
			delete(l.namespaces, namespace)
		}
	}
}

func (r *reader) stop() {
	r.logs.mu.Lock()
	defer r.logs.mu.Unlock()
	delete(r.logs.namespaces[r.namespace].readers, r)
}

// last is the number of the last change in any namespace.
func (r *reader) last() int64 {
	r.logs.mu.Lock()
	defer r.logs.mu.Unlock()
	return r.logs.number
}

// since returns the changes behind a change. It reports false if they are not remembered.
func (r *reader) since(number int64) ([]entry, bool) {
	r.logs.mu.Lock()
	defer r.logs.mu.Unlock()
	log := r.logs.namespaces[r.namespace]
	if number < log.from || number > r.logs.number {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(log.entries, number+1, func(e entry, n int64) int { return int(e.number - n) })
	return slices.Clone(log.entries[first:]), true
}

// Position is the last change that a client has. The zero value is before all changes.
type Position struct {
	log    string
	number int64
}

// ParsePosition reads an event id, "LOG.N". The empty id is before all changes.
func ParsePosition(id string) (Position, error) {
	if id == "" {
		return Position{}, nil
	}
	log, number, _ := strings.Cut(id, ".")
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || len(log) != 8 || strings.Trim(log, "0123456789abcdef") != "" {
		return Position{}, fmt.Errorf("event id %.100q is not of the form LOG.NUMBER", id)
	}
	return Position{log: log, number: int64(n)}, nil
}

// String is the event id of the position.
func (p Position) String() string { return fmt.Sprintf("%s.%d", p.log, p.number) }
