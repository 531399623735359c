// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/mcp"
)

// holding reads keys of a Secret that can change.
func holding(secret *atomic.Pointer[string]) func(*mcp.Options) {
	return func(o *mcp.Options) {
		o.Namespace = "ns"
		o.Secrets = func(name, key string) ([]byte, error) {
			if value := secret.Load(); value != nil && name == "tracker" && key == "token" {
				return []byte(*value), nil
			}
			return nil, fs.ErrNotExist
		}
	}
}

func withToken(entry v1alpha1.MCPServer) v1alpha1.MCPServer {
	entry.HeadersFrom = []v1alpha1.MCPHeaderSource{{Name: "Authorization", Prefix: "Bearer ",
		SecretKeyRef: v1alpha1.SecretKeyReference{Name: "tracker", Key: "token"}}}
	return entry
}

func TestSecretHeaderIsUpdatedWhenSecretChanges(t *testing.T) {
	s := newServer()
	tool(s, "echo", says("ok"))
	handler, wanted := stateless(s), atomic.Value{}
	entry := withToken(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != wanted.Load() {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})))
	var secret atomic.Pointer[string]
	servers, _ := newServers(t, holding(&secret))
	const absent = "Secret tracker does not exist in namespace ns, or has no key token, or that is empty"
	failsWith(t, offer(t, servers, entry), v1alpha1.MCPSecretMissing, absent)
	for _, c := range []struct {
		secret, wanted string
		reason         v1alpha1.MCPServerReason
	}{
		{"", "Bearer token-1", v1alpha1.MCPSecretMissing},
		{"token-1\n", "Bearer token-1", ""},
		{"token-1", "Bearer token-2", ""}, // What was listed with it counts.
		{"token-2", "Bearer token-2", ""},
		{"token-3", "Bearer token-2", v1alpha1.MCPAccessDenied},
		{"a\r\nHost: b", "", v1alpha1.MCPSecretMissing},
	} {
		secret.Store(&c.secret)
		wanted.Store(c.wanted)
		u := offer(t, servers, entry).Unavailable()
		if c.reason == "" && len(u) > 0 || c.reason != "" && (len(u) != 1 || u[0].Reason != c.reason) {
			t.Errorf("with %q, where %q is wanted: %+v", c.secret, c.wanted, u)
		}
		if len(u) > 0 && c.secret != "" && strings.Contains(u[0].Message, c.secret) {
			t.Errorf("the failure has the secret: %s", u[0].Message)
		}
	}
}

func TestTextsOfServerNeverHaveItsSecret(t *testing.T) {
	const token = "token-0123456789"
	s, secret := newServer(), atomic.Pointer[string]{}
	secret.Store(new(token))
	leak := "I got Bearer " + token
	s.AddTool(&sdk.Tool{Name: "says", Description: leak, InputSchema: map[string]any{"type": "object", "title": leak}},
		says(leak))
	tool(s, "fails", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: leak}},
			StructuredContent: map[string]any{"leak": leak}}, nil
	})
	tool(s, "refuses", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &sdkError{leak}
	})
	servers, _ := newServers(t, holding(&secret))
	o := offer(t, servers, withToken(serve(t, stateless(s))))
	var texts []string
	for _, name := range []string{"says", "fails", "refuses"} {
		got := run(t, o, "s__"+name, "{}")
		texts = append(texts, got.output)
		if got.err != nil {
			texts = append(texts, got.err.Error())
		}
	}
	for _, tool := range o.Tools() {
		title, _ := tool.Definition().InputSchema["title"].(string)
		texts = append(texts, tool.Definition().Description, title)
	}
	if all := strings.Join(texts, "\n"); strings.Contains(all, token) || !strings.Contains(all, "[secret]") {
		t.Errorf("the texts are %q", texts)
	}
}

// sdkError is an error in a server's own words.
type sdkError struct{ words string }

func (e *sdkError) Error() string { return e.words }
