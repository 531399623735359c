// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

const (
	// maxEncodings and maxEncoding, in bytes, bound what is kept of encodings: 4 MiB. Who follows a chat is told of a
	// change within moments of each other.
	maxEncodings = 256
	maxEncoding  = 16 << 10
)

// Encodings keeps how a chat stands as events, so that each is encoded once for all who follow the chat. It is safe for
// concurrent use.
type Encodings struct{ known *lru.Cache }

// NewEncodings returns one that has none.
func NewEncodings() *Encodings { return &Encodings{known: lru.New(maxEncodings)} }

// encoding is what an event follows from: its name, and a version of an object.
type encoding struct {
	name    string
	uid     types.UID
	version string
}

// event is that of a name which follows from the chat alone. A nil one encodes each anew.
func (e *Encodings) event(chat *v1alpha1.Chat, name string, data any) (stream.Event, error) {
	if e == nil || chat.ResourceVersion == "" {
		return stream.New(name, "", data)
	}
	key := encoding{name, chat.UID, chat.ResourceVersion}
	if known, ok := e.known.Get(key); ok {
		return known.(stream.Event), nil
	}
	event, err := stream.New(name, "", data)
	if err == nil && len(event.Data) <= maxEncoding {
		e.known.Add(key, event)
	}
	return event, err
}
