// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive shows what archiving a chat makes of an S3 server that verifies signatures (SigV4) and checksums. The
// API server, the manager's controllers and the S3 server are real ones.
package archive

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/archive"
	server "parley.dev/parley/test/archive/s3"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/testmanager"
	"parley.dev/parley/test/kit/waiting"
)

const rightSecret = server.Secret

var (
	cluster *testcluster.Cluster
	s3      s3Server
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.Run(m, &cluster, startS3))
}

// s3Server is the S3 server.
type s3Server struct{ address string }

// startS3 starts the server, with one bucket, on a free port.
func startS3(ctx context.Context) (end func(), err error) {
	dir, err := os.MkdirTemp("", "parley-archive-")
	if err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s3.address = free.Addr().String()
	if err := free.Close(); err != nil { // The server listens there.
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, dir, s3.address) }()
	return func() { stop(); <-ended; _ = os.RemoveAll(dir) }, s3.awaitReady(ctx)
}

// awaitReady waits until the server answers.
func (s s3Server) awaitReady(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) {
			connection, err := net.Dial("tcp", s.address)
			if err == nil {
				_ = connection.Close()
			}
			return err == nil, nil
		})
}

// url of the bucket at an address of the server, or of a proxy to it.
func (s3Server) url(address string) string {
	return "s3://" + server.Bucket + "?region=us-east-1&use_path_style=true&endpoint=http://" + address
}

// What a proxy does to a request.
const (
	whatever = iota
	refuse
	loseAnswer
	damageRequest
	damageAnswer
)

// proxy starts a proxy to the server, which does to each request what decide says. It returns its address.
func (s s3Server) proxy(t *testing.T, decide func(*http.Request) int) string {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: s.address}
	var mu sync.Mutex
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { // It keeps the host, which is signed.
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		todo := decide(r)
		mu.Unlock()
		switch todo {
		case refuse:
			http.Error(w, "refused by the test", http.StatusForbidden)
		case damageRequest:
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(damage(body)))
			forward.ServeHTTP(w, r)
		case loseAnswer, damageAnswer:
			answer := httptest.NewRecorder()
			forward.ServeHTTP(answer, r)
			if todo == loseAnswer {
				panic(http.ErrAbortHandler)
			}
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(damage(answer.Body.Bytes()))
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(listening.Close)
	return listening.Listener.Addr().String()
}

// damage changes a byte in the middle.
func damage(body []byte) []byte {
	if len(body) > 0 {
		body[len(body)/2] ^= 1
	}
	return body
}

// open opens the store with the secret.
func open(t *testing.T, address, secret string) *archive.Store {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	store, err := archive.Open(t.Context(), address, time.Now)
	check.OK(t, err)
	return store
}

// startManager runs the manager's controllers with the store until stop is called, or the test ends.
func startManager(t *testing.T, store *archive.Store, change ...func(*controllers.Options)) (stop func()) {
	t.Helper()
	end, err := testmanager.Start(t.Context(), cluster.Config, func(o *testmanager.Options) {
		o.Controllers.Archive = store
		for _, c := range change {
			c(&o.Controllers)
		}
	})
	check.OK(t, err)
	stop = sync.OnceFunc(func() { check.OK(t, end()) })
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	waiting.Until(t, time.Minute, what, condition)
}
