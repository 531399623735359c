// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// server is an API server with claims and volumes. It remembers what it was asked to change.
type server struct {
	mu      sync.Mutex
	lists   map[string]string
	asked   []string
	created object
	refuses error
	// changes are told to whoever watches.
	changes chan struct{}
}

func (s *server) Get(_ context.Context, path string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []byte(`{"items":[` + s.lists[path] + `]}`), s.refuses
}

func (s *server) Create(_ context.Context, path string, o any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, "create "+path)
	s.created = o.(object)
	return s.refuses
}

func (s *server) Delete(_ context.Context, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, "delete "+path)
	return s.refuses
}

func (s *server) Watch(ctx context.Context, _ string, changed func()) error {
	changed() // of what is there
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.changes:
			changed()
		}
	}
}

// becomes has the server answer otherwise from now on.
func (s *server) becomes(lists map[string]string, refuses error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists, s.refuses, s.asked = lists, refuses, nil
}

const (
	wanted = `"annotations":{"volume.kubernetes.io/storage-provisioner":"parley.dev/local-directory"}`
	made   = `"annotations":{"pv.kubernetes.io/provisioned-by":"parley.dev/local-directory"}`
	// asks is the spec of a claim, without the brace that ends it.
	asks = `{"storageClassName":"local","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},` +
		`"volumeMode":"Filesystem"`
)

// provisioning is a provisioner of that server, with a directory of a volume pvc-1 that holds a file.
func provisioning(t *testing.T, s *server) *Provisioner {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pvc-1", "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Provisioner{API: s, Nodes: []string{"node1"}, Dir: dir, Log: slog.New(slog.DiscardHandler)}
}

func directories(t *testing.T, p *Provisioner) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestOnlyClaimReadyForProvisioningGetsVolume(t *testing.T) {
	const none = ""
	for name, tc := range map[string]struct {
		claim, volumes string
		want           bool
	}{
		"wanted": {`{"metadata":{"uid":"2",` + wanted + `},"spec":` + asks + `}}`, none, true},
		"wanted, beside another's volume": {`{"metadata":{"uid":"2",` + wanted + `},"spec":` + asks + `}}`,
			`{"metadata":{"name":"pvc-3"}}`, true},
		"made, and not yet bound": {`{"metadata":{"uid":"2",` + wanted + `},"spec":` + asks + `}}`,
			`{"metadata":{"name":"pvc-2"}}`, false},
		"waiting for its first pod": {`{"metadata":{"uid":"2"},"spec":` + asks + `}}`, none, false},
		"of another class": {`{"metadata":{"uid":"2","annotations":{"volume.kubernetes.io/storage-provisioner":"x"}},` +
			`"spec":` + asks + `}}`, none, false},
		"bound": {`{"metadata":{"uid":"2",` + wanted + `},"spec":` + asks + `,"volumeName":"v"}}`, none, false},
		"being deleted": {`{"metadata":{"uid":"2","deletionTimestamp":"2026-01-01T00:00:00Z",` + wanted + `},"spec":` + asks +
			`}}`, none, false},
		"for a block device": {`{"metadata":{"uid":"2",` + wanted + `},"spec":{"volumeMode":"Block"}}`, none, false},
		"for a copy": {`{"metadata":{"uid":"2",` + wanted + `},"spec":` + asks + `,"dataSourceRef":{"name":"x"}}}`, none,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{lists: map[string]string{claimsPath: tc.claim, volumesPath: tc.volumes}}
			p := provisioning(t, s)
			if err := p.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(directories(t, p), "pvc-2"); got != tc.want {
				t.Errorf("there is a directory: %t", got)
			}
			if got := slices.Equal(s.asked, []string{"create " + volumesPath}); got != tc.want {
				t.Errorf("it asked to %q", s.asked)
			}
		})
	}
}

func TestVolumeMatchesClaimAndNode(t *testing.T) {
	s := &server{lists: map[string]string{claimsPath: `{"metadata":{"name":"files","namespace":"ns","uid":"2",` + wanted +
		`},"spec":` + asks + `}}`}}
	p := provisioning(t, s)
	if err := p.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(s.created["spec"])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},` +
		`"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim","name":"files","namespace":"ns","uid":"2"},` +
		`"local":{"path":"` + p.Dir + `/pvc-2"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":` +
		`[{"key":"kubernetes.io/hostname","operator":"In","values":["node1"]}]}]}},` +
		`"persistentVolumeReclaimPolicy":"Delete","storageClassName":"local"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReleasedVolumeIsDeletedWithItsFiles(t *testing.T) {
	const released = `"status":{"phase":"Released"}}`
	for name, tc := range map[string]struct {
		volume string
		want   bool
	}{
		"released": {`{"metadata":{"name":"pvc-1",` + made + `},"spec":{"persistentVolumeReclaimPolicy":"Delete"},` +
			released, true},
		"bound": {`{"metadata":{"name":"pvc-1",` + made + `},"spec":{"persistentVolumeReclaimPolicy":"Delete"},` +
			`"status":{"phase":"Bound"}}`, false},
		"to be retained": {`{"metadata":{"name":"pvc-1",` + made + `},"spec":{"persistentVolumeReclaimPolicy":"Retain"},` +
			released, false},
		"somebody else's": {`{"metadata":{"name":"pvc-1"},"spec":{"persistentVolumeReclaimPolicy":"Delete"},` + released,
			false},
		"being deleted": {`{"metadata":{"name":"pvc-1","deletionTimestamp":"2026-01-01T00:00:00Z",` + made +
			`},"spec":{"persistentVolumeReclaimPolicy":"Delete"},` + released, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{lists: map[string]string{volumesPath: tc.volume}}
			p := provisioning(t, s)
			if err := p.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(directories(t, p)) == 0; got != tc.want {
				t.Errorf("its directory is gone: %t", got)
			}
			if got := slices.Equal(s.asked, []string{"delete " + volumesPath + "/pvc-1"}); got != tc.want {
				t.Errorf("it asked to %q", s.asked)
			}
		})
	}
}

// Names of volumes are those of directories: whoever may create volumes must not reach beyond them.
func TestNoNameLeadsOutOfTheDirectory(t *testing.T) {
	s := &server{lists: map[string]string{volumesPath: `{"metadata":{"name":"../beside",` + made +
		`},"spec":{"persistentVolumeReclaimPolicy":"Delete"},"status":{"phase":"Released"}}`}}
	p := provisioning(t, s)
	beside := filepath.Join(filepath.Dir(p.Dir), "beside")
	if err := os.Mkdir(beside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.pass(t.Context()); err == nil || len(s.asked) > 0 {
		t.Errorf("got %v, and it asked to %q", err, s.asked)
	}
	if _, err := os.Stat(beside); err != nil {
		t.Error(err)
	}
}

func TestProvisionerRetriesFailuresAndHandlesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{changes: make(chan struct{}), refuses: errors.New("not now")}
		p := provisioning(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Serve(ctx)
		synctest.Wait()
		s.becomes(map[string]string{claimsPath: `{"metadata":{"uid":"2",` + wanted + `},"spec":` + asks + `}}`}, nil)
		<-time.After(time.Second)
		synctest.Wait()
		if !slices.Contains(s.asked, "create "+volumesPath) {
			t.Errorf("after the failure it asked to %q", s.asked)
		}
		s.becomes(map[string]string{volumesPath: `{"metadata":{"name":"pvc-1",` + made +
			`},"spec":{"persistentVolumeReclaimPolicy":"Delete"},"status":{"phase":"Released"}}`}, nil)
		s.changes <- struct{}{}
		synctest.Wait()
		if !slices.Equal(s.asked, []string{"delete " + volumesPath + "/pvc-1"}) {
			t.Errorf("after the change it asked to %q", s.asked)
		}
	})
}
