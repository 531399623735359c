// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// away is for how much longer the API server is away than it takes to notice that.
var away = flag.Duration("away", 0, "how long the API server is away after chats wait")

// leaseRoom is what a delay of two seconds leaves of the time that a request about a lease may take.
const leaseRoom = 500 * time.Millisecond

const (
	leads     = "this manager leads"
	lostLease = "this manager has lost its lease"
)

func TestChatsWaitWhileAPIServerIsSlow(t *testing.T) {
	n := &network{}
	k := newTalk(t)
	m := startManagers(t, n, k.namespace)
	k.startPod(n)
	k.comeFar(1)
	n.delay.Store(int64(2 * time.Second))
	k.comeFar(1)
	lost := m.logged(lostLease)
	// On a busy machine the API server itself can take what is left of the time.
	if slowest := time.Duration(n.slowestLease.Load()); slowest < leaseRoom/2 {
		check.Equal(t, "leases lost with 2 s", 0, lost)
	}
	eventually(t, "a manager leads", func() bool { return m.logged(leads) > lost })
	n.delay.Store(int64(4 * time.Second))
	eventually(t, "the leader loses its lease", func() bool { return m.logged(lostLease) == lost+1 })
	check.Equal(t, "managers that led", lost+1, m.logged(leads))
	n.delay.Store(0)
	k.comeFar(2)
	check.Equal(t, "terms of leaders", lost+2, m.logged(leads))
	k.end()
}

// TestChatsWaitWhileAPIServerIsAway stops the API server's process, which keeps all connections open and answers none.
func TestChatsWaitWhileAPIServerIsAway(t *testing.T) {
	n := &network{}
	k := newTalk(t)
	m := startManagers(t, n, k.namespace)
	k.startPod(n)
	k.comeFar(1)
	signalAPIServer(t, syscall.SIGSTOP)
	t.Cleanup(func() { signalAPIServer(t, syscall.SIGCONT) })
	eventually(t, "the leader loses its lease", func() bool { return m.logged(lostLease) == 1 })
	eventually(t, "no call of the model is under way", func() bool { return k.model.InFlight() == 0 })
	<-time.After(*away)
	signalAPIServer(t, syscall.SIGCONT)
	k.comeFar(2)
	k.end()
}

// signalAPIServer sends a signal to the process that listens at the cluster's port.
func signalAPIServer(t *testing.T, signal syscall.Signal) {
	t.Helper()
	host, err := url.Parse(cluster.Config.Host)
	check.OK(t, err)
	port := "--secure-port=" + host.Port()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check.OK(t, err)
	for _, file := range commands {
		command, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(command), "kube-apiserver\x00") ||
			!strings.Contains(string(command), port) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		check.OK(t, err)
		check.OK(t, syscall.Kill(pid, signal))
		return
	}
	t.Fatalf("no kube-apiserver has %s", port)
}

// noSpace is etcd's own error.
const noSpace = "database space exceeded"

func TestChatsWaitWhileEtcdIsFull(t *testing.T) {
	n := &network{}
	k := newTalk(t)
	m := startManagers(t, n, k.namespace)
	k.startPod(n)
	k.comeFar(1)
	spare := chattest.In(k.namespace, chattest.Chat("spare"))
	cluster.Create(t, spare)
	fill(t, k.namespace)
	err := cluster.Client.Create(t.Context(), chattest.In(k.namespace, chattest.Chat("new")))
	check.Contains(t, fmt.Sprint("creating a chat: ", err), noSpace)
	eventually(t, "the leader loses its lease", func() bool { return m.logged(lostLease) == 1 })
	eventually(t, "logs say why", func() bool { return m.logged(noSpace) > 0 })
	eventually(t, "no call of the model is under way", func() bool { return k.model.InFlight() == 0 })
	check.OK(t, cluster.Client.Delete(t.Context(), spare)) // What can be done without can be deleted.
	free(t)
	k.comeFar(2)
	k.end()
}

// fill has etcd store versions of an object until it takes no more.
func fill(t *testing.T, namespace string) {
	t.Helper()
	filler := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "filler"}}
	cluster.Create(t, filler)
	for i := range 2 * quota >> 20 {
		filler.Data = map[string]string{"data": strings.Repeat(string(rune('a'+i%26)), 1000<<10)}
		filler.ResourceVersion = ""
		if err := cluster.Client.Update(t.Context(), filler); err != nil {
			check.Contains(t, err.Error(), noSpace)
			return
		}
	}
	t.Fatal("etcd is not full")
}

// free removes old versions from etcd, and has it accept writes again, as an administrator does.
func free(t *testing.T) {
	t.Helper()
	var status struct{ Header struct{ Revision string } }
	etcd(t, "maintenance/status", nil, &status)
	etcd(t, "kv/compaction", map[string]any{"revision": status.Header.Revision, "physical": true}, nil)
	etcd(t, "maintenance/defragment", nil, nil)
	var alarms struct {
		Alarms []struct{ MemberID, Alarm string }
	}
	etcd(t, "maintenance/alarm", map[string]any{"action": "GET"}, &alarms)
	for _, a := range alarms.Alarms {
		etcd(t, "maintenance/alarm", map[string]any{"action": "DEACTIVATE", "memberID": a.MemberID, "alarm": a.Alarm}, nil)
	}
	check.Equal(t, "alarms", 1, len(alarms.Alarms))
}

// etcd makes a request to etcd's gateway for JSON.
func etcd(t *testing.T, path string, request map[string]any, answer any) {
	t.Helper()
	body, err := json.Marshal(request)
	check.OK(t, err)
	if request == nil {
		body = []byte("{}")
	}
	url := cluster.EtcdURL() + "/v3/" + path
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	check.OK(t, err)
	response, err := http.DefaultClient.Do(r)
	check.OK(t, err)
	defer func() { _ = response.Body.Close() }() // It is read.
	check.Equal(t, "status of "+path, http.StatusOK, response.StatusCode)
	if answer != nil {
		check.OK(t, json.NewDecoder(response.Body).Decode(answer))
	}
}
