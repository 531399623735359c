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
)

// Position is where in a chat's story a client is. The zero value is the start.
type Position struct {
	// Now is true for a client that wants nothing of what was committed before it came. The other fields do not count.
	Now bool
	// Last is how many of the newest messages a client wants that begins, or begins again after a reset; 0: all.
	Last int64
	// Chat is the short identity of the chat, which tells it from others that had its name; empty at the start.
	Chat string
	// Version of the history.
	Version int64
	// Attempt whose parts the client was reading; 0 if it last saw a message.
	Attempt int32
	// Number of the last part (Attempt > 0), or of messages that the client holds (Attempt == 0).
	Number int64
	// Length of the history that the attempt builds on; 0 without an attempt.
	Length int64
}

// begins reports whether the client holds nothing, and wants what was committed before.
func (p *Position) begins() bool { return !p.Now && p.Chat == "" }

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

// malformed quotes no more of an id than one can have.
func malformed(id string) error {
	return fmt.Errorf("event id %.100q is not of the form CHAT.VERSION.0.N or CHAT.VERSION.ATTEMPT.SEQ.N", id)
}

// String is the event id of the position. It is made for each part that each client gets.
func (p Position) String() string {
	numbers := [...]int64{p.Version, int64(p.Attempt), p.Number, p.Length}
	id := make([]byte, 0, 64)
	id = append(id, p.Chat...)
	for i, n := range numbers {
		if i == 3 && p.Attempt == 0 { // A message has no length behind its number.
			break
		}
		id = strconv.AppendInt(append(id, '.'), n, 10)
	}
	return string(id)
}
