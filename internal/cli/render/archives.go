// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"io"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"parley.dev/parley/client"
)

// PrintArchives prints a table of archived chats.
func PrintArchives(to io.Writer, archives []client.Archive) error {
	table := newTable(to, "NAME", "UID", "CLASS", "CHATS", "MSGS", "SIZE", "CREATED", "ARCHIVED", "TITLE")
	for i := range archives {
		a := &archives[i]
		table.Row(a.Chat, a.UID, a.ChatClass, strconv.Itoa(a.Objects["Chat"]), strconv.Itoa(a.Objects["ChatMessage"]),
			resource.NewQuantity(a.Size, resource.BinarySI).String(), a.CreatedAt.Format(time.DateOnly),
			duration.HumanDuration(time.Since(a.ArchivedAt)), cmp.Or(a.Problem, a.Title))
	}
	return table.Flush()
}
