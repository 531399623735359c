// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/client"
)

// endpoint is a server as it is called: at its url, or by the agent that runs its command.
type endpoint struct {
	server  *v1alpha1.MCPServer
	url     *url.URL
	agent   *client.Client
	headers http.Header
	secrets scrubber
	// roots are the authorities that its certificate is of; nil: those of the image.
	roots *x509.CertPool
	// key is that of everything that decides what the server says: what is kept of one key is never met by another.
	key string
}

// endpoint is where the server is called, and with what.
func (s *Servers) endpoint(ctx context.Context, server *v1alpha1.MCPServer, places Places) (*endpoint, *failure) {
	if len(server.Command) > 0 {
		return inWorkspace(ctx, server, places)
	}
	target, failed := s.target(server)
	if failed != nil {
		return nil, failed
	}
	e := &endpoint{server: server, url: target, headers: http.Header{}}
	for _, header := range server.Headers {
		e.headers.Set(header.Name, header.Value)
	}
	if failed = s.addSecrets(e); failed != nil {
		return nil, failed
	}
	bundle, failed := s.addRoots(ctx, e)
	if failed != nil {
		return nil, failed
	}
	return e, e.name(e.headers, bundle)
}

// inWorkspace is a server that runs in the workspace: in another pod it is another one.
func inWorkspace(ctx context.Context, server *v1alpha1.MCPServer, places Places) (*endpoint, *failure) {
	agent, failed := housed(ctx, server, places)
	if failed != nil {
		return nil, failed
	}
	e := &endpoint{server: server, agent: agent}
	chat, pod := agent.Place()
	return e, e.name(chat, pod)
}

// name gives the endpoint its key, from its entry and what else decides what the server says.
func (e *endpoint) name(more ...any) *failure {
	raw, err := json.Marshal([]any{e.server, more})
	if err != nil {
		return &failure{reason: v1alpha1.MCPConnectionFailed, words: "its entry cannot be read"}
	}
	sum := sha256.Sum256(raw)
	e.key = hex.EncodeToString(sum[:])
	return nil
}

// host is where its url leads; empty if it has none.
func (e *endpoint) host() string {
	if e.url == nil {
		return ""
	}
	return e.url.Host
}

// addRoots adds the authorities that the entry names, as they are now, and returns what they were read from.
func (s *Servers) addRoots(ctx context.Context, e *endpoint) (bundle []byte, failed *failure) {
	if e.server.CABundleFrom == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.server.ConnectTimeout())
	defer cancel()
	ref, problem := e.server.CABundleFrom.ConfigMapKeyRef, ""
	bundle, err := s.options.ConfigMap(ctx, ref.Name, ref.Key)
	e.roots = x509.NewCertPool()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		problem = "does not exist"
	case err != nil:
		problem = "cannot be read"
	case !e.roots.AppendCertsFromPEM(bundle):
		problem = "holds no certificates in PEM"
	default:
		return bundle, nil
	}
	return nil, &failure{reason: v1alpha1.MCPCABundleInvalid,
		words: clip.Ellipsis(fmt.Sprintf("key %s of ConfigMap %s %s", ref.Key, ref.Name, problem), maxWords)}
}

// target is the url of the server, if it may be called.
func (s *Servers) target(server *v1alpha1.MCPServer) (*url.URL, *failure) {
	target, err := url.Parse(server.URL)
	if err != nil || target.Host == "" || target.User != nil {
		return nil, &failure{reason: v1alpha1.MCPConnectionFailed, words: "its url is not valid"}
	}
	if len(s.options.Hosts) > 0 && !s.options.Hosts.Names(target) {
		host := "its host"
		if httpguard.Showable(target.Host) {
			host = "host " + target.Host
		}
		return nil, &failure{reason: v1alpha1.MCPHostForbidden, words: host + " is none that MCP servers may be called at"}
	}
	return target, nil
}

// inHeader are values that can stand in a header: visible ASCII, and spaces between.
var inHeader = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)

// addSecrets adds the headers whose values are in Secrets, as they are now. None of the values is told in a failure.
func (s *Servers) addSecrets(e *endpoint) *failure {
	var values []string
	for _, header := range e.server.HeadersFrom {
		ref := header.SecretKeyRef
		raw, err := s.options.Secrets(ref.Name, ref.Key)
		value, problem := strings.TrimSpace(string(raw)), ""
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			problem = fmt.Sprintf("key %s of Secret %s cannot be read in the generation pod", ref.Key, ref.Name)
		case err != nil || value == "":
			problem = fmt.Sprintf("Secret %s does not exist in namespace %s, or has no key %s, or that is empty", ref.Name,
				s.options.Namespace, ref.Key)
		case !inHeader.MatchString(value):
			problem = fmt.Sprintf("key %s of Secret %s has characters that no header can have", ref.Key, ref.Name)
		}
		if problem != "" {
			return &failure{reason: v1alpha1.MCPSecretMissing, words: clip.Ellipsis(problem, maxWords)}
		}
		e.headers.Set(header.Name, header.Prefix+value)
		values = append(values, header.Prefix+value, value)
	}
	e.secrets = newScrubber(values)
	return nil
}
