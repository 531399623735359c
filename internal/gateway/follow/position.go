// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
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
}

// ParsePosition reads an event id, "V.A.S" or "V.0.N". The empty id is the start.
func ParsePosition(id string) (Position, error) {
	if id == "" {
		return Position{}, nil
	}
	fields := strings.Split(id, ".")
	if len(fields) != 3 {
		return Position{}, fmt.Errorf("event id %q is not of the form VERSION.ATTEMPT.NUMBER", id)
	}
	version, err1 := strconv.ParseUint(fields[0], 10, 63)
	attempt, err2 := strconv.ParseUint(fields[1], 10, 31)
	number, err3 := strconv.ParseUint(fields[2], 10, 63)
	if err1 != nil || err2 != nil || err3 != nil {
		return Position{}, fmt.Errorf("event id %q is not of the form VERSION.ATTEMPT.NUMBER", id)
	}
	return Position{Version: int64(version), Attempt: int32(attempt), Number: int64(number)}, nil
}

// String is the event id of the position.
func (p Position) String() string {
	return fmt.Sprintf("%d.%d.%d", p.Version, p.Attempt, p.Number)
}
