// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modeltest has scripted models that are called over HTTP as generation pods call them, without an API server.
package modeltest

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

const (
	// Namespace of the configurations.
	Namespace = "ns"
	// Key is the API key that a Server requires.
	Key = "sk-right-0123456789"
	// WrongKey is another one.
	WrongKey = "sk-wrong-0123456789"
)

// Start serves models that follow the script and require Key.
func Start(t testing.TB, script modelserver.Script) (server *modelserver.Server, url string) {
	t.Helper()
	script.RequireKey = Key
	server, err := modelserver.New(script)
	check.OK(t, err)
	listening := httptest.NewServer(server)
	t.Cleanup(func() {
		listening.CloseClientConnections() // Close waits for requests that a fault has left open.
		listening.Close()
	})
	return server, listening.URL
}

// Keys reads the keys of Secret keys: right and wrong ones, and an empty one.
func Keys(secret, key string) ([]byte, error) {
	content, ok := map[string]string{"keys/right": Key + "\n", "keys/wrong": WrongKey, "keys/empty": "\n"}[secret+"/"+key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(content), nil
}

// Config is a configuration of the model "scripted" at the URL, with the right key, changed.
func Config(name, url string, change ...func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
	return chattest.In(Namespace, chattest.Config(name, append([]func(*v1beta1.ChatModelConfigSpec){
		func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL, s.MaxOutputTokens = url, new(int64(77))
			s.APIKey = &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "keys", Key: "right"}}
		}}, change...)...))
}

// Priced makes a token of the prompt cost 1 and one of the reply 2 millionths of a EUR.
func Priced(s *v1beta1.ChatModelConfigSpec) {
	s.Pricing = &v1beta1.Pricing{Currency: "EUR", InputPerMillion: "1", OutputPerMillion: "2"}
}

// Impatient makes a provider's silence of a second too long.
func Impatient(s *v1beta1.ChatModelConfigSpec) { s.IdleTimeoutSeconds = new(int32(1)) }

// World has the models of one pod, and the server that they are at.
type World struct {
	*models.Models
	Server *modelserver.Server
	// URL of the server, without a path.
	URL string
	// HTTP makes the calls.
	HTTP http.RoundTripper
	// API has the ConfigMaps, the classes and the configurations that the pod's watch has not brought yet, by their names.
	API        *apiclient.Client
	ConfigMaps map[string]*apiclient.ConfigMap
	Classes    map[string]*v1beta1.ChatClass
	Unwatched  map[string]*v1beta1.ChatModelConfig
	// Refuse is how many requests the API server refuses at first, and Asked how many it had.
	Refuse, Asked atomic.Int32

	t       testing.TB
	configs cache.Store
}

// New returns models of which only "default" is configured.
func New(t testing.TB, script modelserver.Script) *World {
	t.Helper()
	w := &World{t: t, configs: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	w.Server, w.URL = Start(t, script)
	api := httptest.NewServer(http.HandlerFunc(w.serveAPI))
	t.Cleanup(api.Close)
	var err error
	if w.API, err = apiclient.New(&rest.Config{Host: api.URL}, "test"); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	w.HTTP = transport
	w.Models = models.New(models.Options{
		Namespace: Namespace, Client: w.API, Configs: w.configs, Keys: Keys, Now: time.Now,
		HTTP: func(httpguard.Route) *http.Client {
			return observe.RecordExchanges(&http.Client{Transport: through(func() http.RoundTripper { return w.HTTP })})
		},
	})
	w.Add("default")
	return w
}

// serveAPI answers as an API server.
func (w *World) serveAPI(to http.ResponseWriter, r *http.Request) {
	to.Header().Set("Content-Type", "application/json")
	name, code := path.Base(r.URL.Path), http.StatusNotFound
	var answer any
	if config := w.ConfigMaps[name]; config != nil {
		answer = config
	} else if class := w.Classes[name]; class != nil {
		answer = class
	} else if config := w.Unwatched[name]; config != nil {
		answer = config
	}
	if w.Asked.Add(1) <= w.Refuse.Load() {
		answer, code = nil, http.StatusForbidden
	}
	if answer == nil {
		to.WriteHeader(code)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: metav1.StatusReason(strings.ReplaceAll(http.StatusText(code), " ", ""))}
	}
	_ = json.NewEncoder(to).Encode(answer)
}

// through asks for its transport at each request: a test may set another one.
type through func() http.RoundTripper

// RoundTrip implements http.RoundTripper.
func (t through) RoundTrip(r *http.Request) (*http.Response, error) { return t().RoundTrip(r) }

// Add configures a model of the server.
func (w *World) Add(name string, change ...func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
	w.t.Helper()
	config := Config(name, w.URL+"/v1", change...)
	w.Put(config)
	return config
}

// Put adds the configuration, or replaces the one of its name.
func (w *World) Put(config *v1beta1.ChatModelConfig) {
	w.t.Helper()
	if err := w.configs.Add(config); err != nil {
		w.t.Fatal(err)
	}
}

// Bodies are the bodies of the requests to the model, in order; "": to all models.
func (w *World) Bodies(model string) (bodies []string) {
	for _, r := range w.Server.Requests() {
		if body := string(r.Body); model == "" || strings.Contains(body, `"model":"`+model+`"`) {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// LastBody is the body of the newest request.
func (w *World) LastBody() string {
	w.t.Helper()
	bodies := w.Bodies("")
	if len(bodies) == 0 {
		w.t.Fatal("no model was asked")
	}
	return bodies[len(bodies)-1]
}
