// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
)

// Position is where in the stream of a chat a client is. The zero value is the start.
type Position struct {
	// Now is whether the client wants nothing that was committed before it came. The other fields are then ignored.
	Now bool
	// Last is how many of the newest messages a client gets at the start, or after a reset; 0: all.
	Last int64
	// Chat is the short identity of the chat, by which other chats of its name are detected; empty at the start.
	Chat string
	// Version of the history.
	Version int64
	// Attempt whose parts the client was reading; 0 if its last event was a message.
	Attempt int32
	// Number of the last part (Attempt > 0), or the number of messages that the client has (Attempt == 0).
	Number int64
	// Length of the history that the attempt builds on; 0 without an attempt.
	Length int64
}

// isStart reports whether the client has nothing, and wants what was committed before.
func (p *Position) isStart() bool { return !p.Now && p.Chat == "" }

// identity is a short form of a chat's UID, 8 hexadecimal digits.
func identity(uid types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // It never fails.
	return fmt.Sprintf("%08x", h.Sum32())
}

// ParsePosition reads an event id, CHAT.VERSION.0.N or CHAT.VERSION.ATTEMPT.SEQ.N. The empty id is the start.
func ParsePosition(id string) (Position, error) {
	if id == "" {
		return Position{}, nil
	}
	chat, rest, _ := strings.Cut(id, ".")
	fields := strings.Split(rest, ".")
	if !isIdentity(chat) || len(fields) != 3 && len(fields) != 4 {
		return Position{}, malformed(id)
	}
	var numbers [4]int64
	for i, field := range fields {
		number, err := strconv.ParseUint(field, 10, 63)
		if err != nil || i == 1 && number > math.MaxInt32 {
			return Position{}, malformed(id)
		}
		numbers[i] = int64(number)
	}
	if (numbers[1] == 0) != (len(fields) == 3) {
		return Position{}, malformed(id)
	}
	return Position{Chat: chat, Version: numbers[0], Attempt: int32(numbers[1]), Number: numbers[2], Length: numbers[3]},
		nil
}

func isIdentity(s string) bool {
	return len(s) == 8 && strings.Trim(s, "0123456789abcdef") == ""
}

func malformed(id string) error {
	return fmt.Errorf("event id %.100q is not of the form CHAT.VERSION.0.N or CHAT.VERSION.ATTEMPT.SEQ.N", id)
}

// String is the event id of the position. It is on the hot path: each part that a client gets has one.
func (p Position) String() string {
	numbers := [...]int64{p.Version, int64(p.Attempt), p.Number, p.Length}
	id := make([]byte, 0, 64)
	id = append(id, p.Chat...)
	for i, n := range numbers {
		if i == 3 && p.Attempt == 0 { // A message has no length.
			break
		}
		id = strconv.AppendInt(append(id, '.'), n, 10)
	}
	return string(id)
}

// Before is the position right before a message: where the chat or the message says that it stands, or else at the end
// of the history, which does not have the message yet. The message may be nil.
func Before(chat *v1beta1.Chat, message *v1beta1.ChatMessage) Position {
	node := history.Node{Index: chat.Status.History.Length}
	if message != nil {
		if n := history.Of(chat, message); n.Placed && history.MayHold(chat, message) {
			node = n
		}
	}
	if node.Index == 0 {
		return Position{}
	}
	return behind(chat, node.Index)
}

// behind is the position behind so many messages of the history, before the parts of an attempt.
func behind(chat *v1beta1.Chat, messages int64) Position {
	return Position{Chat: identity(chat.UID), Version: chat.Status.History.Version, Attempt: 1, Length: messages}
}
