// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	azureScope  = "https://cognitiveservices.azure.com/.default"
	googleScope = "https://www.googleapis.com/auth/cloud-platform"
)

// routes are the hosts behind TLS.
func (c *Cloud) routes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		host, path string
		answer     http.HandlerFunc
	}{
		{"login.microsoftonline.com", "POST /{tenant}/oauth2/v2.0/token", c.entra},
		{"sts.googleapis.com", "POST /v1/token", c.sts},
		{"iamcredentials.googleapis.com", "POST /v1/projects/-/serviceAccounts/{call}", c.impersonate},
		{"my.openai.azure.com", "POST /openai/v1/{protocol...}", c.openAI},
		{"europe-west4-aiplatform.googleapis.com", "POST /v1beta1/projects/project-1/locations/europe-west4/{call...}",
			c.gemini},
		{"models.example.com", "/", func(_ http.ResponseWriter, r *http.Request) {
			c.t.Errorf("another host was called with %q", r.Header.Get("Authorization"))
		}},
	} {
		method, path, _ := strings.Cut(route.path, " ")
		if path == "" {
			mux.Handle(route.host+method, route.answer)
			continue
		}
		mux.Handle(method+" "+route.host+path, c.endpoint(route.host, route.answer))
	}
	return mux
}

// endpoint answers as usual, unless it is to fail.
func (c *Cloud) endpoint(host string, answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		failing := c.fail[host]
		c.mu.Unlock()
		if failing != nil {
			failing(w, r)
			return
		}
		answer(w, r)
	})
}

// form reads a form that has these fields and no others, once each.
func form(r *http.Request, fields map[string]string) (missing string) {
	if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.ParseForm() != nil ||
		r.URL.RawQuery != "" {
		return "a form"
	}
	if got, want := slices.Sorted(maps.Keys(r.PostForm)), slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) {
		return fmt.Sprintf("the fields %v in place of %v", want, got)
	}
	for name, want := range fields {
		if values := r.PostForm[name]; len(values) != 1 || want != "" && values[0] != want {
			return name
		}
	}
	return ""
}

// oauthError refuses as RFC 6749 has it.
func oauthError(w http.ResponseWriter, status int, code, description string) {
	answer(w, status, map[string]any{"error": code, "error_description": description})
}

func answer(w http.ResponseWriter, status int, content map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content) // The client sees it.
}

// entra is the token endpoint of Entra ID: client credentials with a federated assertion (RFC 7523).
func (c *Cloud) entra(w http.ResponseWriter, r *http.Request) {
	missing := form(r, map[string]string{
		"grant_type": "client_credentials", "client_id": ClientID, "scope": azureScope, "client_assertion": "",
		"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
	})
	switch {
	case missing != "" || r.PathValue("tenant") != TenantID || r.Header.Get("Authorization") != "":
		oauthError(w, http.StatusBadRequest, "invalid_request", "AADSTS900144: The request must contain "+missing)
	case !c.proves(r.PostForm.Get("client_assertion"), "api://AzureADTokenExchange"):
		oauthError(w, http.StatusUnauthorized, "invalid_client", "AADSTS700213: No matching federated identity record found "+
			"for presented assertion subject '"+Subject+"'. It was "+r.PostForm.Get("client_assertion"))
	default:
		answer(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3600, "ext_expires_in": 3600,
			"access_token": c.grant("entra", azureScope)})
	}
}

// sts is Google's token exchange (RFC 8693).
func (c *Cloud) sts(w http.ResponseWriter, r *http.Request) {
	missing := form(r, map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "audience": Audience, "scope": googleScope,
		"requested_token_type": "urn:ietf:params:oauth:token-type:access_token", "subject_token": "",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
	})
	switch {
	case missing != "":
		oauthError(w, http.StatusBadRequest, "invalid_request", "the request needs "+missing)
	case !c.proves(r.PostForm.Get("subject_token"), Audience):
		oauthError(w, http.StatusBadRequest, "invalid_grant", "ID Token issued at 1 is stale to sign-in.")
	default:
		answer(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3600,
			"issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
			"access_token":      c.grant("sts", googleScope)})
	}
}

// impersonate gives a token of the service account to whom the exchange gave one.
func (c *Cloud) impersonate(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Scope    []string `json:"scope"`
		Lifetime string   `json:"lifetime"`
	}
	err := json.NewDecoder(r.Body).Decode(&asked)
	if err != nil || !slices.Equal(asked.Scope, []string{googleScope}) || asked.Lifetime != "3600s" ||
		!c.granted(r, googleScope) || r.PathValue("call") != Account+":generateAccessToken" {
		answer(w, http.StatusForbidden, map[string]any{"error": map[string]any{"code": 403, "status": "PERMISSION_DENIED",
			"message": "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist)."}})
		return
	}
	answer(w, http.StatusOK, map[string]any{"accessToken": c.grant("iamcredentials", googleScope),
		"expireTime": c.now().Add(time.Hour).UTC().Format(time.RFC3339)})
}

// metadata is GKE's metadata server.
func (c *Cloud) metadata(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.Header.Get("Metadata-Flavor") != "Google" ||
		r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" ||
		r.URL.Query().Get("scopes") != googleScope {
		http.Error(w, "Missing required header \"Metadata-Flavor\": \"Google\"", http.StatusForbidden)
		return
	}
	w.Header().Set("Metadata-Flavor", "Google")
	answer(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3600,
		"access_token": c.grant("metadata", googleScope)})
}

// accepts refuses a call of a model without a token for the scope, or with a key.
func (c *Cloud) accepts(w http.ResponseWriter, r *http.Request, scope string) bool {
	if !c.granted(r, scope) || r.Header.Values("Api-Key") != nil || r.Header.Values("X-Goog-Api-Key") != nil {
		answer(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"code": 401, "status": "UNAUTHENTICATED",
			"message": "Access denied due to " + r.Header.Get("Authorization")}})
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return true
}

// openAI is a deployment on Azure.
func (c *Cloud) openAI(w http.ResponseWriter, r *http.Request) {
	if !c.accepts(w, r, azureScope) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.PathValue("protocol") == "responses" {
		_, _ = io.WriteString(w, `data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message",`+
			`"id":"m","role":"assistant","content":[]}}`+"\n\n"+`data: {"type":"response.output_text.delta","item_id":"m",`+
			`"output_index":0,"content_index":0,"delta":"Hi"}`+"\n\n"+
			`data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[{`+
			`"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}],`+
			`"usage":{"input_tokens":1,"output_tokens":1}}}`+"\n\n")
		return
	}
	_, _ = io.WriteString(w, `data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},`+
		`"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
}

// gemini is Vertex AI.
func (c *Cloud) gemini(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("call") != "publishers/google/models/gemini-2.5-flash:streamGenerateContent" ||
		r.URL.RawQuery != "alt=sse" {
		http.NotFound(w, r)
		return
	}
	if !c.accepts(w, r, googleScope) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},`+
		`"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`+"\n\n")
}
