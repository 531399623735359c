// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity authenticates model calls by the workload identity of the generation pod, at Azure and Google Cloud.
// Bedrock's requests are signed by package messages, with AWS's own chain of credentials.
//
// The environment of the pod, which the cloud's webhook sets, names the identity, and the host that is called selects
// the cloud. No host that a ChatModelConfig names is asked for a token, and no token goes to another host than the
// cloud's.
package identity

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/netguard/httpguard"
)

// Identity is the workload identity of a pod, with its tokens. It is safe for concurrent use.
type Identity struct {
	client   *http.Client
	metadata http.RoundTripper
	tokens   *tokencache.Cache
}

// New returns an identity without a token. client calls token endpoints; Google's metadata server, whose address is one
// that client may refuse, is called by a client of its own. now returns the current time.
func New(client *http.Client, now func() time.Time) *Identity {
	i := &Identity{client: client, metadata: newMetadataTransport()}
	i.tokens = tokencache.New(i.mint, now)
	return i
}

// Sign puts the token into a request: its Authorization. It fails with a fault.LoginError, or with ctx.
func (i *Identity) Sign(ctx context.Context, request *http.Request, _ []byte) error {
	scope, err := scopeOf(request.URL)
	if err != nil {
		return err
	}
	token, err := i.tokens.Of(ctx, scope)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// googleScope is that of tokens for Vertex AI.
const googleScope = "https://www.googleapis.com/auth/cloud-platform"

var (
	// azureHost are the hosts of Azure's models, which Microsoft itself serves; the cloud is the group.
	azureHost = regexp.MustCompile(
		`^[A-Za-z0-9-]+\.(?:openai|cognitiveservices|services\.ai)\.(azure\.(?:com|us))(?::443)?$`)
	// vertexHost are those of Vertex AI.
	vertexHost = regexp.MustCompile(`^(?:[a-z0-9-]+-)?aiplatform(?:\.[a-z]+\.rep)?\.googleapis\.com$`)
)

// scopeOf is what the token for a URL is for.
func scopeOf(to *url.URL) (string, error) {
	if to.Scheme == "https" && to.User == nil {
		if m := azureHost.FindStringSubmatch(to.Host); m != nil {
			return "https://cognitiveservices." + m[1] + "/.default", nil
		}
		if vertexHost.MatchString(to.Host) {
			return googleScope, nil
		}
	}
	where := "this URL"
	if httpguard.Showable(to.Host) {
		where = to.Scheme + "://" + to.Host
	}
	return "", &fault.LoginError{Problem: fmt.Sprintf(
		"the token of the identity is sent to Azure's and Google's own hosts over https alone, and %s is none", where)}
}

// mint gets a token for a scope.
func (i *Identity) mint(ctx context.Context, scope string) (string, time.Time, error) {
	if scope == googleScope {
		return i.google(ctx)
	}
	return i.azure(ctx, scope)
}
