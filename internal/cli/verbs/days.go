// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// days is a flag with a duration that can also be a number of days, such as 7d.
type days time.Duration

// String implements pflag.Value. The help shows no default of that value.
func (d *days) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

// Type implements pflag.Value.
func (d *days) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *days) Set(text string) error {
	const most = 36500
	if number, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < -most || n > most {
			return fmt.Errorf("%q is no number of days, such as 7d", text)
		}
		*d = days(n) * days(24*time.Hour)
		return nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is no duration, such as 8h or 7d", text)
	}
	*d = days(parsed)
	return nil
}
