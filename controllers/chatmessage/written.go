// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/v1beta1"
)

// mostWritten is how many messages are remembered: more than the cache can be behind at any moment.
const mostWritten = 4096

// writtenMessages remembers the last version of each message that this process has written. Several events wake a
// message at the end of a turn, and the cache may be behind the write that the first has led to. To forget a version
// costs a conflict.
type writtenMessages struct {
	begin    sync.Once
	versions *lru.Cache
}

func (w *writtenMessages) put(m *v1beta1.ChatMessage) {
	w.begin.Do(func() { w.versions = lru.New(mostWritten) })
	w.versions.Add(m.UID, m.ResourceVersion)
}

// isBehind reports whether the cached message is older than what was written.
func (w *writtenMessages) isBehind(cached *v1beta1.ChatMessage) bool {
	w.begin.Do(func() { w.versions = lru.New(mostWritten) })
	version, known := w.versions.Get(cached.UID)
	if !known {
		return false
	}
	written, _ := version.(string)
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written)
	if err == nil && order < 0 {
		return true
	}
	w.versions.Remove(cached.UID)
	return false
}
