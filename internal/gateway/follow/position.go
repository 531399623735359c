// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Position is where in a chat's story a client is. The zero value is the start.
type Position struct {
	// Now is true for a client that wants nothing of what was committed before it came. The other fields do not count.
	Now bool
	// Version of the history.
	Version int64
	// Attempt whose parts the client was reading; 0 if it last saw a message.
	Attempt int32
	// Number of the last part (Attempt > 0), or of messages that the client holds (Attempt == 0).
	Number int64
	// Length of the history that the attempt builds on; 0 if it is not known.
	Length int64
}

// ParsePosition reads an event id, "V.0.N" or "V.A.S.N", where N may be left out. The empty id is the start.
func ParsePosition(id string) (Position, error) {
	if id == "" {
		return Position{}, nil
	}
	fields := strings.Split(id, ".")
	if len(fields) != 3 && len(fields) != 4 {
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
	if numbers[1] == 0 && len(fields) == 4 {
		return Position{}, malformed(id)
	}
	return Position{Version: numbers[0], Attempt: int32(numbers[1]), Number: numbers[2], Length: numbers[3]}, nil
}

func malformed(id string) error {
	return fmt.Errorf("event id %q is not of the form VERSION.ATTEMPT.NUMBER or VERSION.ATTEMPT.NUMBER.LENGTH", id)
}

// String is the event id of the position.
func (p Position) String() string {
	id := fmt.Sprintf("%d.%d.%d", p.Version, p.Attempt, p.Number)
	if p.Attempt > 0 && p.Length > 0 {
		return fmt.Sprintf("%s.%d", id, p.Length)
	}
	return id
}
