// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestProcessesAreKilledOnTheLocalClusterAlone(t *testing.T) {
	pods := []string{"delete a generation pod by force", "delete a generation pod"}
	everywhere := append(slices.Clone(pods), "delete the gateway pod")
	for name, c := range map[string]struct {
		devcluster []string
		images     []string
		deeds      []string
		says       string
	}{
		"an upgrade": {[]string{"devcluster"}, []string{"old", "new"},
			append(pods, "move the manager to the other version", "move the gateway to the other version"), ""},
		"the local cluster": {[]string{"devcluster"}, nil,
			append(everywhere, "kill the leading manager", "delete the leading manager pod", "kill a generator",
				"restart the API server"), ""},
		"another cluster": {nil, nil, append(everywhere, "delete the leading manager pod by force"), "not the local one"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			chaos := newChaos(&world{options: options{devcluster: c.devcluster, images: c.images},
				log: slog.New(slog.NewTextHandler(&log, nil))})
			var deeds []string
			for _, d := range chaos.deeds {
				deeds = append(deeds, d.name)
			}
			slices.Sort(deeds)
			slices.Sort(c.deeds)
			if !slices.Equal(deeds, c.deeds) {
				t.Errorf("it does %v", deeds)
			}
			if !strings.Contains(log.String(), c.says) || (log.Len() == 0) != (c.says == "") {
				t.Errorf("it says %q", log.String())
			}
		})
	}
}
