// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"parley.dev/parley/internal/chat/machine"
)

// node is a state as the diagram shows it.
func node(s machine.State) string {
	switch {
	case s == machine.None:
		return "[*]"
	case s.Archived():
		return "Archived"
	}
	return string(s)
}

// renderDiagram shows the moves between phases as a mermaid diagram.
// An event that leaves the phase as it is, is left out.
func renderDiagram(w io.Writer) {
	fmt.Fprint(w, "\n## Diagram\n\nThe moves between phases; events that leave the phase as it is are left "+
		"out. Archived stands for Waiting and Error, each of which comes back as it was.\n\n"+
		"```mermaid\nstateDiagram-v2\n")
	type arrow struct{ from, to string }
	var order []arrow
	events := map[arrow][]string{}
	for _, r := range machine.Rules() {
		for _, e := range r.Edges {
			a := arrow{node(e.From), node(e.To)}
			if a.from == a.to {
				continue
			}
			if events[a] == nil {
				order = append(order, a)
			}
			if !slices.Contains(events[a], string(r.Event)) {
				events[a] = append(events[a], string(r.Event))
			}
		}
	}
	for _, a := range order {
		fmt.Fprintf(w, "    %s --> %s: %s\n", a.from, a.to, strings.Join(events[a], ", "))
	}
	fmt.Fprint(w, "```\n")
}
