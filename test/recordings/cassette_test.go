// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package recordings_test

import (
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// cassette is a recorded conversation.
type cassette struct {
	Name         string
	Interactions []interaction `yaml:"interactions"`
}

type interaction struct {
	Request struct {
		URL  string `yaml:"url"`
		Body string `yaml:"body"`
	} `yaml:"request"`
	Response struct {
		Body    string      `yaml:"body"`
		Headers http.Header `yaml:"headers"`
	} `yaml:"response"`
}

// cassettes are the recorded conversations that are streamed.
func cassettes(t *testing.T) []cassette {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "charm.land/fantasy").Output()
	if err != nil {
		t.Fatalf("finding the module with the recordings: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(module)), "providertests", "testdata")
	var all []cassette
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") || !strings.Contains(filepath.Base(path), "stream") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c := cassette{Name: strings.TrimSuffix(strings.TrimPrefix(path, root+string(filepath.Separator)), ".yaml")}
		all = append(all, c)
		return yaml.Unmarshal(raw, &all[len(all)-1])
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 170 {
		t.Fatalf("there are %d streamed recordings in %s, far fewer than there were", len(all), root)
	}
	return all
}

// stand serves one reply, again and again, and keeps the last request.
type stand struct {
	*httptest.Server

	mu    sync.Mutex
	reply interaction
	// size is how much of the reply is served; reset breaks the connection behind it, else it ends in order.
	size   int
	reset  bool
	random *rand.Rand
	sent   []byte
}

func newStand(t *testing.T, seed uint64) *stand {
	t.Helper()
	s := &stand{random: rand.New(rand.NewPCG(seed, 1))}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// serve sets what is served.
func (s *stand) serve(reply interaction, size int, reset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply, s.size, s.reset = reply, size, reset
}

func (s *stand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, _ = io.ReadAll(r.Body)
	w.Header().Set("Content-Type", s.reply.Response.Headers.Get("Content-Type"))
	for rest := s.reply.Response.Body[:s.size]; rest != ""; {
		n := min(len(rest), 1+s.random.IntN(4000))
		_, _ = io.WriteString(w, rest[:n])
		_ = http.NewResponseController(w).Flush()
		rest = rest[n:]
	}
	if !s.reset {
		return
	}
	if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = connection.Close()
	}
}

// client calls the stand, whatever host is asked for.
func (s *stand) client() *http.Client {
	to, _ := url.Parse(s.URL)
	return &http.Client{Transport: redirect{to, &http.Transport{DisableKeepAlives: true}}}
}

type redirect struct {
	to   *url.URL
	next http.RoundTripper
}

func (r redirect) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host, request.Host = r.to.Scheme, r.to.Host, r.to.Host
	return r.next.RoundTrip(request)
}
