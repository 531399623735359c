// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTwoDirectoriesNeverShareACgroup(t *testing.T) {
	a, b := Cluster{Dir: "/src/a/.parley/cluster"}, Cluster{Dir: "/src/b/.parley/cluster"}
	if a.Cgroup() == b.Cgroup() {
		t.Fatalf("both are called %s", a.Cgroup())
	}
	if again := (Cluster{Dir: a.Dir}).Cgroup(); again != a.Cgroup() || len(again) != len("parley-")+12 {
		t.Fatalf("the name of one directory is %s, then %s", a.Cgroup(), again)
	}
}

func TestMissingPathsResolveToAbsoluteWithoutLinks(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(base, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	c, err := New(filepath.Join(base, "link", "new", "cluster"), "bin", "")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(base, "real", "new", "cluster"); c.Dir != want {
		t.Errorf("directory is %s, want %s", c.Dir, want)
	}
	if !filepath.IsAbs(c.Bin) {
		t.Errorf("programs are in %s, which is relative", c.Bin)
	}
}

func TestPlacesThatTheClusterCoversAreRefused(t *testing.T) {
	for dir, ok := range map[string]bool{
		"/src/parley/.parley/cluster": true, "/tmp/x": true, "/var/library": true, "/runner/work": true,
		"": false, "/": false, "/var/lib/x": false, "/etc": false, "/run/user/1000/x": false,
	} {
		if err := (Cluster{Dir: dir, Bin: "/cache/bin"}).Check(); (err == nil) != ok {
			t.Errorf("directory %q: %v, want accepted %v", dir, err, ok)
		}
	}
	if err := (Cluster{Dir: "/tmp/x", Bin: "/var/lib/cache"}).Check(); err == nil {
		t.Error("programs below /var/lib were accepted")
	}
}

func TestProgramPathsPointToTheirDownloadSet(t *testing.T) {
	c := Cluster{Bin: "/cache"}
	for name, want := range map[string]string{
		"etcd": "/cache/envtest/etcd", "kubectl": "/cache/envtest/kubectl",
		"kubelet": "/cache/node/kubelet", "cni/bridge": c.CNI() + "/bridge", "images/pause.tar": c.Images() + "/pause.tar",
	} {
		if got := c.Program(name); got != want {
			t.Errorf("%s is at %s, want %s", name, got, want)
		}
	}
}
