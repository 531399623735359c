// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/test/kit/check"
)

// expectPeak checks that no process whose command line begins so, in the pods of a component, has ever had more
// resident memory, in MiB.
func (w *world) expectPeak(t *testing.T, component, begins string, most int) {
	t.Helper()
	var pods corev1.PodList
	check.OK(t, c.List(t.Context(), &pods, client.InNamespace(w.ns),
		client.MatchingLabels{"parley.dev/component": component}))
	seen, highest := 0, 0
	for i := range pods.Items {
		its := inPod(&pods.Items[i])
		for _, pid := range processesWhere(t, func(group, command string) bool {
			return strings.HasPrefix(command, begins) && its(group)
		}) {
			seen++
			highest = max(highest, peak(t, pid))
		}
	}
	t.Logf("%d processes %s have had %d MiB at most", seen, strings.TrimSpace(begins), highest)
	if seen == 0 || highest > most {
		t.Errorf("want some, and %d MiB at most", most)
	}
}

// peak is the most resident memory that a process has had, in MiB, rounded up.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	check.OK(t, err)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(after, "\n")
	kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(line), " kB"))
	if err != nil {
		t.Fatalf("process %d says of its memory %q", pid, line)
	}
	return (kib + 1023) / 1024
}
