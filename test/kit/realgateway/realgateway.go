// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realgateway runs the gateway as a program of its own before a test's API server.
package realgateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// patience is how long the gateway may take to know the cluster.
const patience = time.Minute

// programs is where Main puts what tests build.
var programs string

// Main runs the tests of a package that starts gateways.
func Main(run func() int) int {
	var err error
	if programs, err = os.MkdirTemp("", "parley-gateway-"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(programs) }() // It is a temporary one.
	return run()
}

// build builds cmd/gateway once.
var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "gateway")
	compile := exec.CommandContext(context.Background(), "go", "build", "-o", path, "parley.dev/parley/cmd/gateway")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0") // The race detector's tests enable it; programs do without.
	out, err := compile.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building the gateway: %w\n%s", err, out)
	}
	return path, err
})

// Gateway is a program that serves.
type Gateway struct {
	// URL is where it serves.
	URL string

	t       testing.TB
	address string
	config  string
	args    []string
	log     string
	program *exec.Cmd
}

// Start starts a gateway whose account is parley-gateway of a namespace, and which works with the rights of cfg. It
// ends with the test.
func Start(t testing.TB, cfg *rest.Config, namespace string, args ...string) *Gateway {
	t.Helper()
	dir := t.TempDir()
	g := &Gateway{t: t, address: freeAddress(t), config: filepath.Join(dir, "kubeconfig"), log: filepath.Join(dir, "log"),
		args: append([]string{"--namespace=" + namespace, "--account=parley-gateway", "--metrics-address=0"}, args...)}
	g.URL = "http://" + g.address
	check.OK(t, clientcmd.WriteToFile(kubeconfig(cfg), g.config))
	g.Again()
	t.Cleanup(g.Kill)
	return g
}

// Again starts the gateway again at the address that it had.
func (g *Gateway) Again() {
	g.t.Helper()
	path, err := build()
	if err != nil {
		g.t.Fatal(err)
	}
	log, err := os.OpenFile(g.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // The program has its own.
	args := append([]string{"--listen=" + g.address, "--kubeconfig=" + g.config}, g.args...)
	g.program = exec.CommandContext(context.Background(), path, args...)
	g.program.Stdout, g.program.Stderr = log, log
	if err := g.program.Start(); err != nil {
		g.t.Fatal(err)
	}
	waiting.Until(g.t, patience, "the gateway is ready", g.Ready)
}

// Stop asks the gateway to end, as the kubelet does, and waits until it has.
func (g *Gateway) Stop() {
	g.t.Helper()
	check.OK(g.t, g.program.Process.Signal(syscall.SIGTERM))
	check.OK(g.t, g.program.Wait())
}

// Ready is whether the gateway says that it is ready.
func (g *Gateway) Ready() bool {
	request, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.URL+"/readyz", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// Kill ends the gateway without a word.
func (g *Gateway) Kill() {
	_ = g.program.Process.Kill()
	_ = g.program.Wait() // It was killed.
}

// Log is what it has said so far.
func (g *Gateway) Log() string {
	g.t.Helper()
	said, err := os.ReadFile(g.log)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(said)
}

// Memory is its resident memory (VmRSS) in bytes.
func (g *Gateway) Memory() int64 {
	g.t.Helper()
	for line := range strings.Lines(g.proc("status")) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			return g.number(fields[1]) << 10
		}
	}
	g.t.Fatal("the gateway has no memory")
	return 0
}

// ticksPerSecond is what Linux counts CPU time in (USER_HZ).
const ticksPerSecond = 100

// CPU is the CPU time that it has used.
func (g *Gateway) CPU() time.Duration {
	g.t.Helper()
	stat := g.proc("stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // from the third field on, which is its state
	return time.Duration(g.number(fields[11])+g.number(fields[12])) * time.Second / ticksPerSecond
}

func (g *Gateway) number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

func (g *Gateway) proc(file string) string {
	g.t.Helper()
	said, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(g.program.Process.Pid), file))
	if err != nil {
		g.t.Fatal(err)
	}
	return string(said)
}

// kubeconfig reaches the API server as cfg does.
func kubeconfig(cfg *rest.Config) clientcmdapi.Config {
	const name = "test"
	return clientcmdapi.Config{CurrentContext: name,
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData,
			Token: cfg.BearerToken}},
		Contexts: map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
	}
}

// freeAddress is an address of this machine that nobody uses now.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check.OK(t, err)
	defer func() { _ = listener.Close() }() // Its address is all that is wanted.
	return listener.Addr().String()
}
