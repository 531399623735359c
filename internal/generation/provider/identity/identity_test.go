// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/identity"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/cloudtest"
)

// pod is a generation pod in a cloud.
type pod struct {
	*cloudtest.Cloud
	t        *testing.T
	identity *identity.Identity
	// later is how much time has passed, in nanoseconds.
	later atomic.Int64
}

func newPod(t *testing.T) *pod {
	t.Helper()
	p := &pod{t: t}
	p.Cloud = cloudtest.New(t, p.now)
	p.identity = identity.New(p.Client(), p.now)
	return p
}

func (p *pod) now() time.Time { return time.Now().Add(time.Duration(p.later.Load())) }

var (
	workloadIdentity = &v1beta1.ModelAuth{Type: v1beta1.AuthWorkloadIdentity}
	azure            = v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderAzure, Model: "gpt-4o",
		Auth: workloadIdentity, BaseURL: "https://my.openai.azure.com"}
	vertex = v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderGoogle, Model: "gemini-2.5-flash",
		Auth: workloadIdentity, VertexAI: &v1beta1.VertexAI{Project: "project-1", Location: "europe-west4"}}
)

// call calls the model, and returns the error that the call ends in.
func (p *pod) call(spec v1beta1.ChatModelConfigSpec) error {
	p.t.Helper()
	model, err := provider.NewAs(p.identity, &spec, p.Client())
	check.OK(p.t, err)
	stream, err := model.Stream(p.t.Context(), fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("Hello?")}})
	if err != nil {
		return err
	}
	text := ""
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			return part.Error
		}
		text += part.Delta
	}
	check.Equal(p.t, "what the model says", "Hi", text)
	return nil
}

// refused calls the model, which fails, and returns what people read of it.
func (p *pod) refused(spec v1beta1.ChatModelConfigSpec) *v1beta1.GenerationError {
	p.t.Helper()
	err := p.call(spec)
	if err == nil {
		p.t.Fatal("the call succeeded")
	}
	for _, secret := range []string{"eyJ", "access-"} {
		check.Lacks(p.t, err.Error(), secret)
	}
	return fault.Classify(err, fault.Subject{Config: "main", Spec: &spec})
}

func TestModelsOfAzureTakeThePodsIdentity(t *testing.T) {
	p := newPod(t)
	p.OnAzure(t)
	spec := azure
	for _, spec.Transport = range []v1beta1.ModelTransport{"", v1beta1.TransportResponses} {
		check.OK(t, p.call(spec))
	}
	check.Equal(t, "two calls exchange", []string{"entra"}, p.Exchanges())
}

func TestVertexAITakesThePodsIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		set       func(p *pod, t *testing.T)
		exchanges []string
	}{
		"by GKE's metadata server": {func(*pod, *testing.T) {}, []string{"metadata"}},
		"by an exchange":           {func(p *pod, t *testing.T) { p.OnGoogle(t, "") }, []string{"sts"}},
		"as a service account": {func(p *pod, t *testing.T) { p.OnGoogle(t, cloudtest.Account) },
			[]string{"sts", "iamcredentials"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			c.set(p, t)
			for range 2 {
				check.OK(t, p.call(vertex))
			}
			check.Equal(t, "two calls exchange", c.exchanges, p.Exchanges())
		})
	}
}

func TestTheMetadataServerIsReachedPastTheGuard(t *testing.T) {
	p := newPod(t)
	guarded := httpguard.Settings{}.Client()
	if _, err := guarded.Get("http://" + os.Getenv("GCE_METADATA_HOST")); err == nil {
		t.Fatal("the client of models reaches the metadata server")
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://aiplatform.googleapis.com/", nil)
	err := identity.New(guarded, p.now).Sign(t.Context(), request, nil)
	got := request.Header.Get("Authorization")
	check.Equal(t, "error, result", []any{nil, "Bearer access-metadata-1"}, []any{err, got})
}

func TestTokensAreRenewedWithRotatedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		spec     v1beta1.ChatModelConfigSpec
		set      func(p *pod, t *testing.T) string
		audience string
	}{
		"Azure": {azure, (*pod).onAzure, "api://AzureADTokenExchange"},
		"Google": {vertex, func(p *pod, t *testing.T) string { return p.OnGoogle(t, cloudtest.Account) },
			cloudtest.Audience},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			file := c.set(p, t)
			for range 3 {
				check.OK(t, p.call(c.spec))
				// The token of the file is about to expire, and that of the cloud has.
				p.later.Add(int64(61 * time.Minute))
				p.Rotate(file, c.audience)
			}
			check.Equal(t, "different calls, each an hour after the other", 3, len(slices.Compact(p.Calls())))
		})
	}
}

func (p *pod) onAzure(t *testing.T) string { return p.OnAzure(t) }

func TestATokenIsRenewedBeforeItEnds(t *testing.T) {
	p := newPod(t)
	p.OnAzure(t)
	for minutes, want := range []int{0: 1, 1: 1} {
		p.later.Store(int64(time.Duration(minutes) * 45 * time.Minute))
		check.Equal(t, fmt.Sprintf("error, exchanges after %d minutes", minutes*45), []any{nil, want},
			[]any{p.call(azure), len(p.Exchanges())})
	}
	p.later.Store(int64(50 * time.Minute))
	p.Fail("login.microsoftonline.com", status(http.StatusServiceUnavailable))
	check.OK(t, p.call(azure)) // A token that is good for ten minutes is used.
	p.Fail("login.microsoftonline.com", nil)
	p.later.Store(int64(51 * time.Minute))
	check.Equal(t, "error, exchanges", []any{nil, 2}, []any{p.call(azure), len(p.Exchanges())})
}

func TestCallsShareOneExchange(t *testing.T) {
	p := newPod(t)
	p.OnAzure(t)
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			check.OK(t, p.call(azure))
		})
	}
	calls.Wait()
	check.Equal(t, "20 calls exchange", []any{1, 20}, []any{len(p.Exchanges()), len(p.Calls())})
}

// status answers with an HTTP status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// Security (a workload identity): cannot appear in an error.
func TestALoginThatFailsSaysWhereAndWho(t *testing.T) {
	with := func(name, value string) func(*pod, *testing.T) {
		return func(p *pod, t *testing.T) {
			p.OnAzure(t)
			t.Setenv(name, value)
		}
	}
	for name, c := range map[string]struct {
		spec      v1beta1.ChatModelConfigSpec
		set       func(p *pod, t *testing.T)
		retryable bool
		says      []string
	}{
		"no webhook": {azure, func(*pod, *testing.T) {}, false, []string{
			"$AZURE_CLIENT_ID, which the webhook of Azure Workload Identity sets, is not set in the generation pod"}},
		"no token": {azure, with("AZURE_FEDERATED_TOKEN_FILE", "/nowhere"), false, []string{
			"the file that $AZURE_FEDERATED_TOKEN_FILE names cannot be read"}},
		"an authority without TLS": {azure, with("AZURE_AUTHORITY_HOST", "http://login.microsoftonline.com"), false,
			[]string{"$AZURE_AUTHORITY_HOST of the generation pod is no https URL"}},
		"a token that Azure does not know": {azure, func(p *pod, t *testing.T) { p.Rotate(p.OnAzure(t), "other") }, false,
			[]string{"login.microsoftonline.com refused a token for client " + cloudtest.ClientID + " of tenant " +
				cloudtest.TenantID + " (401 invalid_client)", "It said: AADSTS700213: No matching federated identity record",
				"Check how the service account parley-generation of this namespace is bound"}},
		"a redirect": {azure, func(p *pod, t *testing.T) {
			p.OnAzure(t)
			p.Fail("login.microsoftonline.com", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://models.example.com/", http.StatusTemporaryRedirect)
			})
		}, false, []string{"refused a token", "(307)"}},
		"an endpoint that fails": {azure, func(p *pod, t *testing.T) {
			p.OnAzure(t)
			p.Fail("login.microsoftonline.com", status(http.StatusServiceUnavailable))
		}, true, []string{"login.microsoftonline.com failed to give a token for client", "(503)"}},
		"an endpoint that is not there": {azure, with("AZURE_AUTHORITY_HOST", "https://nowhere.example"), true,
			[]string{"the token endpoint nowhere.example cannot be reached"}},
		"an answer without a token": {azure, func(p *pod, t *testing.T) {
			p.OnAzure(t)
			p.Fail("login.microsoftonline.com", status(http.StatusOK))
		}, false, []string{"login.microsoftonline.com answered without a token"}},
		"a token that Google does not know": {vertex, func(p *pod, t *testing.T) {
			p.Rotate(p.OnGoogle(t, ""), "other")
		}, false, []string{"sts.googleapis.com refused a token for the pod's principal at iam.googleapis.com/projects/1/" +
			"locations/global/workloadIdentityPools/pool/providers/cluster (400 invalid_grant)"}},
		"a service account that is another's": {vertex, func(p *pod, t *testing.T) {
			p.OnGoogle(t, "other@project-1.iam.gserviceaccount.com")
		}, false, []string{"iamcredentials.googleapis.com refused a token for service account " +
			"other@project-1.iam.gserviceaccount.com (403 PERMISSION_DENIED)", "iam.serviceAccounts.getAccessToken"}},
		"a key file": {vertex, func(p *pod, t *testing.T) {
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", p.File("key.json", `{"type": "service_account"}`))
		}, false, []string{"names is no credential configuration of type external_account"}},
		"a configuration without its token": {vertex, func(p *pod, t *testing.T) {
			check.OK(t, os.Remove(p.OnGoogle(t, "")))
		}, false, []string{"the token that is to be exchanged cannot be read"}},
		"a pod that GKE does not know": {vertex, func(p *pod, _ *testing.T) {
			p.Fail("metadata", status(http.StatusNotFound))
		}, false, []string{"refused a token for the pod's service account by GKE's metadata server (404)"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			c.set(p, t)
			e := p.refused(c.spec)
			check.Equal(t, "reason, retryable", []any{v1beta1.ErrorAuthenticationFailed, c.retryable},
				[]any{e.Reason, e.Retryable})
			for _, part := range append(c.says, "The workload identity of ChatModelConfig main could not log in: ") {
				check.Contains(t, e.Text(), part)
			}
			check.Equal(t, "a token is told or a model called", false, len(p.Calls()) > 0)
			check.Lacks(t, e.Text(), "eyJ")
		})
	}
}

// Security (a workload identity): cannot be sent to a host that a ChatModelConfig names. Also
// TestALoginThatCannotBeMeantIsRefused of test/integration.
func TestTokensGoToTheCloudsHostsAlone(t *testing.T) {
	p := newPod(t)
	p.OnAzure(t)
	for _, baseURL := range []string{
		"https://models.example.com", "http://my.openai.azure.us", "https://my.openai.azure.com.models.example.com",
		"https://my.openai.azure.com:8443", "https://my.openai.azure.com@models.example.com",
		"https://a.b.openai.azure.com", "https://my.azure-api.net",
	} {
		spec := azure
		spec.BaseURL = baseURL
		e := p.refused(spec)
		check.Equal(t, baseURL, []any{v1beta1.ErrorAuthenticationFailed, false}, []any{e.Reason, e.Retryable})
		check.Contains(t, e.Message, "own hosts over https")
	}
	check.Equal(t, "tokens were asked", nil, p.Exchanges())
}

func TestARefusedTokenIsTheIdentitys(t *testing.T) {
	p := newPod(t)
	p.OnAzure(t)
	for code, want := range map[int]string{
		http.StatusUnauthorized: "azure refused the workload identity of ChatModelConfig main (401). Let the identity of " +
			"the service account parley-generation call models there, then send a message to continue",
		http.StatusForbidden: "The workload identity of ChatModelConfig main may not use model gpt-4o (403). Grant it at " +
			"azure, or name another model, then send a message to continue",
	} {
		p.Fail("my.openai.azure.com", status(code))
		check.Equal(t, "the refusal", want, p.refused(azure).Text())
	}
}

func TestACanceledCallWaitsForNoToken(t *testing.T) {
	p := newPod(t)
	p.OnAzure(t)
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	p.Fail("login.microsoftonline.com", func(http.ResponseWriter, *http.Request) {
		cancel()
		<-release
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, azure.BaseURL, nil)
	check.OK(t, err)
	if err := p.identity.Sign(ctx, request, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
