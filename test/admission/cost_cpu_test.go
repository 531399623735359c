// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// controlPlane is the folders in /proc of the processes of the test's control plane.
type controlPlane struct{ apiServer, etcd string }

var etcdPort = regexp.MustCompile(`--etcd-servers=[^\x00]*:(\d+)`)

// findControlPlane finds the processes by the ports that they listen on.
func findControlPlane(b *testing.B) controlPlane {
	b.Helper()
	host, err := url.Parse(cluster.Config.Host)
	if err != nil {
		b.Fatal(err)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	find := func(what string) (dir, line string) {
		for _, path := range lines {
			raw, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(raw), what) {
				return filepath.Dir(path), string(raw)
			}
		}
		b.Fatalf("no process has %s", what)
		return "", ""
	}
	apiServer, line := find("--secure-port=" + host.Port() + "\x00")
	port := etcdPort.FindStringSubmatch(line)
	if port == nil {
		b.Fatalf("%q names no etcd", line)
	}
	etcd, _ := find("--listen-client-urls=http://127.0.0.1:" + port[1] + "\x00")
	return controlPlane{apiServer, etcd}
}

// used is the CPU time of both since they began.
func (c controlPlane) used(b *testing.B) (apiServer, etcd time.Duration) {
	b.Helper()
	return cpuOf(b, c.apiServer), cpuOf(b, c.etcd)
}

func cpuOf(b *testing.B, dir string) time.Duration {
	b.Helper()
	threads, err := filepath.Glob(dir + "/task/*/schedstat")
	if err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	for _, path := range threads {
		raw, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // The thread has ended.
		}
		var nanoseconds int64
		if _, scanned := fmt.Sscan(string(raw), &nanoseconds); err != nil || scanned != nil {
			b.Fatalf("reading %s: %v, %v", path, err, scanned)
		}
		sum += time.Duration(nanoseconds)
	}
	return sum
}
