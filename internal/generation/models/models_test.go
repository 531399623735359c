// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"charm.land/fantasy"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/identity"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/cloudtest"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/kit/proxytest"
	"parley.dev/parley/test/modelserver"
)

// world has a model at https://models.test, which is reached by a proxy that wants credentials.
type world struct {
	t         *testing.T
	authority *proxytest.Authority
	proxy     *proxytest.Proxy
	// secrets are what is mounted, by Secret/key.
	secrets map[string]string
	configs cache.Store
	models  *models.Models
}

func newWorld(t *testing.T) *world {
	t.Helper()
	model, err := modelserver.New(modelserver.Script{Rules: []modelserver.Rule{{
		Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Hi")}},
	}}})
	check.OK(t, err)
	w := &world{t: t, authority: proxytest.NewAuthority(t), configs: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	w.proxy = proxytest.New(t, w.authority.Server(t, model, "models.test").URL)
	w.proxy.User, w.proxy.Password = "jane", "p@ss"
	w.secrets = map[string]string{"keys/token": "sk-1", "login/username": "jane\n", "login/password": "p@ss\n",
		"corp/ca.crt": string(w.authority.PEM)}
	w.models = models.New(models.Options{
		Namespace: "ns", Configs: w.configs, Now: time.Now,
		Keys: func(secret, key string) ([]byte, error) {
			switch content, ok := w.secrets[secret+"/"+key]; {
			case content == "unreadable":
				return nil, errors.New("permission denied")
			case !ok:
				return nil, fs.ErrNotExist
			default:
				return []byte(content), nil
			}
		},
		HTTP: func(route httpguard.Route) *http.Client {
			return httpguard.Settings{Loopback: true}.With(route).Client()
		},
	})
	return w
}

// add adds a configuration of the protocol, and returns its name.
func (w *world) add(p providertest.Protocol) string {
	w.t.Helper()
	base := "https://models.test/v1"
	if p == providertest.Claude || p == providertest.Gemini {
		base = "https://models.test"
	}
	name := strings.ToLower(string(p.Provider) + string(p.Transport))
	config := chattest.In("ns", chattest.Config(name))
	config.Spec = *p.Spec(base)
	config.Spec.Proxy = &v1beta1.ModelProxy{URL: w.proxy.URL, SecretRef: &v1beta1.SecretReference{Name: "login"}}
	config.Spec.CABundleFrom = &v1beta1.CABundleSource{
		SecretKeyRef: &v1beta1.SecretKeyReference{Name: "corp", Key: "ca.crt"}}
	check.OK(w.t, w.configs.Add(config))
	return name
}

// call calls the model of the configuration to the end.
func (w *world) call(name string) error {
	w.t.Helper()
	return callTarget(w.t, w.models, name)
}

func TestCallsOfAConfigurationShareConnections(t *testing.T) {
	for _, p := range providertest.All {
		t.Run(string(p.Provider)+" "+string(p.Transport), func(t *testing.T) {
			w := newWorld(t)
			name := w.add(p)
			for range 3 {
				check.OK(t, w.call(name))
			}
			check.Equal(t, "connections of 3 calls", 1, len(w.proxy.Asked()))
			// Another bundle makes other connections, which trust other authorities.
			w.secrets["corp/ca.crt"] = string(proxytest.NewAuthority(t).PEM)
			check.Contains(t, fmt.Sprint(w.call(name)), "certificate")
			w.secrets["corp/ca.crt"] += string(w.authority.PEM)
			check.OK(t, w.call(name))
			// So do other credentials.
			w.proxy.Password, w.secrets["login/password"] = "new", "new"
			before := len(w.proxy.Asked())
			check.OK(t, w.call(name))
			check.Equal(t, "new credentials reuse connections", false, len(w.proxy.Asked()) == before)
		})
	}
}

func TestAConfigurationThatNamesNothingSaysWhat(t *testing.T) {
	for name, c := range map[string]struct {
		secrets map[string]string
		says    string
	}{
		"no bundle": {map[string]string{"corp/ca.crt": "-"}, "Secret corp does not exist in namespace ns, or has no key " +
			`"ca.crt", or that is empty: caBundleFrom.secretKeyRef names it`},
		"no certificate": {map[string]string{"corp/ca.crt": "hello"},
			`key "ca.crt" of Secret corp, which caBundleFrom names, holds no certificate in PEM`},
		"a bundle that cannot be read": {map[string]string{"corp/ca.crt": "unreadable"},
			`key "ca.crt" of Secret corp, which caBundleFrom.secretKeyRef names, cannot be read in the generation pod`},
		"no user": {map[string]string{"login/username": "-"}, "Secret login does not exist in namespace ns, or has no key " +
			`"username", or that is empty: proxy.secretRef names it`},
		"an empty password": {map[string]string{"login/password": "\n"},
			`Secret login does not exist in namespace ns, or has no key "password"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := w.add(providertest.Chat)
			maps.Copy(w.secrets, c.secrets)
			maps.DeleteFunc(w.secrets, func(_, content string) bool { return content == "-" })
			_, failed := w.models.Target(t.Context(), config)
			want := "ChatModelConfig " + config + " cannot be used: " + c.says
			check.Equal(t, "reason, retryable, without advice", []any{v1beta1.ErrorModelConfigInvalid, false, false},
				[]any{failed.Reason, failed.Retryable, failed.Advice == ""})
			check.Contains(t, failed.Message, want)
			check.Equal(t, "the proxy is asked", nil, w.proxy.Asked())
		})
	}
}

func TestConfigurationTheWatchLacksIsLookedUp(t *testing.T) {
	w := modeltest.New(t, modelserver.Script{})
	w.Unwatched = map[string]*v1beta1.ChatModelConfig{"late": modeltest.Config("late", w.URL)}
	w.Refuse.Store(1) // Trouble with the API server passes.
	target, failure := w.Target(t.Context(), "late")
	check.Equal(t, "failed, config, requests", []any{false, "late", 2},
		[]any{failure != nil, target.Config.Name, int(w.Asked.Load())})
	_, failure = w.Target(t.Context(), "absent")
	check.Equal(t, "the failure", []any{v1beta1.ErrorModelConfigNotFound, true}, []any{failure.Reason, failure.Retryable})
}

// piped answers requests with a stream.
type piped struct{ stream io.ReadCloser }

// RoundTrip implements http.RoundTripper.
func (p piped) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: p.stream, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}}, nil
}

func TestKeepAlivesAreASignOfLife(t *testing.T) {
	for _, sign := range []string{"event: ping\ndata: {\"type\": \"ping\"}\n\n", ": OPENROUTER PROCESSING\n\n"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, notes := httpguard.WithNotes(t.Context(), time.Now)
			ctx, cancel := context.WithCancelCause(ctx)
			go models.GuardSilence(ctx, notes, time.Second, cancel)
			stream, provider := io.Pipe()
			began := time.Now()
			go func() {
				for range 12 { // 3.6 s in all, of which each wait is shorter than the patience of 1 s.
					<-time.After(300 * time.Millisecond)
					_, _ = io.WriteString(provider, sign)
				}
				<-ctx.Done()
				_ = provider.CloseWithError(context.Cause(ctx))
			}()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://model.test", http.NoBody)
			check.OK(t, err)
			response, err := httpguard.Guard(&http.Client{Transport: piped{stream}}, httpguard.ModelLimits).Do(request)
			check.OK(t, err)
			defer func() { _ = response.Body.Close() }()
			_, err = io.Copy(io.Discard, response.Body)
			check.Equal(t, "silent, after", []any{true, 4600 * time.Millisecond},
				[]any{errors.Is(err, models.ErrSilent), time.Since(began)})
		})
	}
}

func TestATargetIsCalledByThePodsIdentity(t *testing.T) {
	auth := &v1beta1.ModelAuth{Type: v1beta1.AuthWorkloadIdentity}
	for name, spec := range map[string]v1beta1.ChatModelConfigSpec{
		"azure": {Provider: v1beta1.ProviderAzure, Model: "gpt-4o", Auth: auth, BaseURL: "https://my.openai.azure.com"},
		"vertex": {Provider: v1beta1.ProviderGoogle, Model: "gemini-2.5-flash", Auth: auth,
			VertexAI: &v1beta1.VertexAI{Project: "project-1", Location: "europe-west4"}},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := cloudtest.New(t, time.Now)
			cloud.OnAzure(t)
			config := chattest.In("ns", chattest.Config(name))
			config.Spec = spec
			all, configs := inCloud(cloud)
			for generation := range int64(2) {
				config.Generation = generation
				check.OK(t, configs.Add(config))
				check.OK(t, callTarget(t, all, name))
			}
			check.Equal(t, "exchanges of one identity", 1, len(cloud.Exchanges()))
		})
	}
}

// inCloud are models that are called in the cloud, and the store of their configurations.
func inCloud(cloud *cloudtest.Cloud) (*models.Models, cache.Store) {
	configs := cache.NewStore(cache.MetaNamespaceKeyFunc)
	return models.New(models.Options{Namespace: "ns", Configs: configs, Now: time.Now,
		HTTP:     func(httpguard.Route) *http.Client { return cloud.Client() },
		Identity: identity.New(cloud.Client(), time.Now)}), configs
}

func TestTargetWithoutIdentityTellsWhatIsMissing(t *testing.T) {
	cloud := cloudtest.New(t, time.Now)
	config := chattest.In("ns", chattest.Config("main"))
	config.Spec = v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAzure, Model: "gpt-4o",
		Auth: &v1beta1.ModelAuth{Type: v1beta1.AuthWorkloadIdentity}, BaseURL: "https://my.openai.azure.com"}
	all, configs := inCloud(cloud)
	check.OK(t, configs.Add(config))
	err := callTarget(t, all, "main")
	e := fault.Classify(err, fault.Subject{Config: "main", Spec: &config.Spec})
	check.Equal(t, "the result", v1beta1.ErrorAuthenticationFailed, e.Reason)
	check.Contains(t, e.Message, "$AZURE_CLIENT_ID")
}

// callTarget calls the model of the configuration to the end.
func callTarget(t *testing.T, all *models.Models, name string) error {
	t.Helper()
	target, failed := all.Target(t.Context(), name)
	if failed != nil {
		t.Fatal(failed.Text())
	}
	stream, err := target.Model.Stream(t.Context(), fantasy.Call{
		Prompt: fantasy.Prompt{fantasy.NewUserMessage("?")}, MaxOutputTokens: new(int64(77))})
	if err != nil {
		return err
	}
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			return part.Error
		}
	}
	return nil
}
