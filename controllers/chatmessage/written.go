// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/v1beta1"
)

const (
	// mostWritten is how many messages are remembered: more than the cache can be behind at any moment.
	mostWritten = 4096
	// longestBehind is how long the cache may be behind. Versions go back where etcd is restored from a backup.
	longestBehind = 10 * time.Second
)

// writtenMessages remembers the last version of each message that this process has written. Several events wake a
// message at the end of a turn, and the cache may be behind the write that the first has led to. To forget a version
// costs a conflict.
type writtenMessages struct {
	begin sync.Once
	// writes are of type write, by the UIDs of messages.
	writes *lru.Cache
}

type write struct {
	version string
	at      time.Time
}

func (w *writtenMessages) put(m *v1beta1.ChatMessage, now time.Time) {
	w.begin.Do(func() { w.writes = lru.New(mostWritten) })
	w.writes.Add(m.UID, write{m.ResourceVersion, now})
}

// isBehind reports whether the cached message is older than what was written.
func (w *writtenMessages) isBehind(cached *v1beta1.ChatMessage, now time.Time) bool {
	w.begin.Do(func() { w.writes = lru.New(mostWritten) })
	found, known := w.writes.Get(cached.UID)
	if !known {
		return false
	}
	last, _ := found.(write)
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, last.version)
	if err == nil && order < 0 && now.Sub(last.at) < longestBehind {
		return true
	}
	w.writes.Remove(cached.UID)
	return false
}
