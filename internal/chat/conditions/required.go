// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/printable"
)

// maxNamed is how many tools a condition names.
const maxNamed = 5

// requiredOf says what clients and people have to do.
func requiredOf(required *v1beta1.RequiresActionStatus) string {
	var clients, people []string
	if required != nil {
		for i := range required.ToolCalls {
			switch call := &required.ToolCalls[i]; {
			case call.Kind == v1beta1.RequiresClient:
				clients = append(clients, call.Name)
			case call.Decision == nil:
				people = append(people, call.Name)
			}
		}
	}
	var says []string
	if len(clients) > 0 {
		says = append(says, "a client must bring the results of "+listed(clients))
	}
	if len(people) > 0 {
		says = append(says, "people must decide about "+listed(people))
	}
	if len(says) == 0 {
		return "All calls are decided"
	}
	text := strings.Join(says, ", and ") + ": see status.requiresAction"
	return strings.ToUpper(text[:1]) + text[1:]
}

// listed names tools, each once. A model can make up any name.
func listed(names []string) string {
	for i := range names {
		names[i] = printable.Line(names[i])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
